"""The commands of `equipoise-server`, by what they are about; `cli` puts them together."""
