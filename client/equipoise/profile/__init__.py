"""Files on the user's disk: profiles, certificates, receipts."""
