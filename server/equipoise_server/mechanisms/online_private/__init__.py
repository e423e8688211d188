"""online_private: answers statements one at a time, analysts hidden from one another."""
