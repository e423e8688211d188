"""An analyst's pages: rounds, questions, answers and proofs. They say nothing of any other analyst."""

from equipoise.console.analyst import answers, asking, own_world, proofs, rounds
from equipoise.console.pages import Pages

ANALYST_PAGES: Pages = (
    ("GET", "/", rounds.home),
    ("GET", "/rounds/{round_id}", rounds.show),
    ("POST", "/rounds/{round_id}/wait", rounds.wait),
    ("GET", "/rounds/{round_id}/table", rounds.table),
    ("POST", "/rounds/{round_id}/ask", asking.ask),
    ("POST", "/rounds/{round_id}/withdraw", asking.withdraw),
    ("GET", "/rounds/{round_id}/answers/{token}", asking.answers),
    ("GET", "/rounds/{round_id}/results", answers.results),
    ("GET", "/rounds/{round_id}/results/{file}", answers.results_file),
    ("POST", "/rounds/{round_id}/tables", answers.tables),
    ("GET", "/rounds/{round_id}/synopsis", answers.synopsis),
    ("POST", "/rounds/{round_id}/synopsis", answers.synopsis_file),
    ("POST", "/rounds/{round_id}/verify", proofs.verify_round),
    ("GET", "/rounds/{round_id}/loss", proofs.loss),
    ("POST", "/rounds/{round_id}/loss", proofs.accept),
    ("GET", "/rounds/{round_id}/spending", own_world.spending),
    ("GET", "/datasets", own_world.datasets),
    ("GET", "/datasets/{name}", own_world.dataset),
    ("GET", "/grants", own_world.grants),
    ("POST", "/grants", own_world.request),
    ("GET", "/receipts", proofs.receipts),
)
