"""The question that each check of an audit answers, and questions that no check can answer."""

from __future__ import annotations

QUESTIONS = {
    "A1": "Is the checkpoint signed by the custodian, with keys that the log says are in force?",
    "A2": "Do the log's entries make up exactly what was signed?",
    "A3": "Has the log only grown since every checkpoint that was seen before?",
    "A4": "Does every record open to its entry of the log, with nothing missing and nothing twice?",
    "A5": "Is the budget journal one unbroken chain, the one that the log commits to?",
    "A6": "Is every charge what its parts come to?",
    "A6b": "Does dp_accounting come to the same totals?",
    "A7": "Was every account within its cap whenever something was reserved?",
    "A8": "Is no round missing, did each go its way (opened, reserved and sealed, run, spent and released), and "
    "has each dataset the account of its people?",
    "A9": "Is what each plan costs within its round's budgets, was every analyst charged just that, and was every "
    "danger accepted?",
    "A10": "Are seeds committed to, each for one round, and the auditor's nonces and all readings on record?",
    "A11": "Were the workloads used that receipts say were taken, under the terms that receipts promise?",
    "A12": "Had everybody been admitted who took part, with a certificate in force at that time?",
}

# What no check of an archive can tell, for the report.
NOT_CHECKED = (
    "That answers are what the mechanism computes from the data: the data and the seed are needed for that "
    "(equipoise-server audit replay).",
    "That a plan's parts are what its parameters cost: the replay plans again.",
    "That the registered data are true, or complete, or what they are said to be; above all, that a dataset of new "
    "people holds nobody of another one.",
    "That each analyst's results are those that were recorded, and those that it was told while a session was "
    "open: each checks its own (equipoise verify).",
    "That a session's statements are in slots of their own shares: the replay looks at all of them.",
    "That nobody was shown another log: compare checkpoints with others (--checkpoint).",
)
