"""The command `accept-loss`: an analyst accepts that the custodian's log has lost a part that it had seen."""

from __future__ import annotations

from typing import Annotated

import typer

from equipoise.clients.analyst import Client
from equipoise.commands.options import DEFAULT_PROFILE, AsJson, Profile, RoundId
from equipoise.commands.printing import print_json, print_line
from equipoise.profile.accepted_losses import LOSSES
from equipoise.profile.receipt_store import CHECKPOINT
from equipoise.verification.own_round import accept_admitted, admitted_to

Root = Annotated[
    str | None,
    typer.Argument(
        metavar="[ROOT]",
        help="The root of the checkpoint that your profile keeps, to accept its loss. [default: only show it]",
        show_default=False,
    ),
]


def accept_loss(
    round_id: RoundId, root: Root = None, profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    """Show what part of its log the custodian admits to have lost; with ROOT, accept that your checkpoint is in it.

    ROUND is any round or session of yours that has ended. Ask first what was lost, when and why. From then on your
    bundles are compared with the log as it is now. The checkpoint of the lost part stays in the profile
    (accepted-losses), as evidence, and check 13 names it. A loss that the log does not admit is never accepted:
    then the checkpoint proves that the log was forked.
    """
    with Client.from_profile(profile) as client:
        if root is None:
            lost, said, _ = admitted_to(client, profile, round_id)
        else:
            lost, said = accept_admitted(client, profile, round_id, root)
    if as_json:
        facts = {"lost": {"size": lost.size, "root": lost.root}, "admitted": said}
        print_json(facts | {"accepted": root is not None})
        return
    print_line(
        f"Your checkpoint of {lost.size:,} leaves, with the root {lost.root.hex()}, is not in the log any more."
    )
    print_line(f"{said[0].upper()}{said[1:]}.")
    if root is None:
        print_line("Ask the custodian what was lost, when and why. Then, if you accept that loss:")
        print_line(f"    equipoise accept-loss {round_id} {lost.root.hex()}")
    else:
        print_line(f"You have accepted that loss. The checkpoint stays in {profile / LOSSES / lost.root.hex()}.")
        print_line(f"Compared with from now on: {profile / CHECKPOINT}")
