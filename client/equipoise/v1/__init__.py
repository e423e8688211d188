"""Generated from protos/equipoise/v1 by protos/generate.sh; never edited."""
