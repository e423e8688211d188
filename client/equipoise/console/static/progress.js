// Shows how far long work is, until it has ended. Without scripts the page reloads itself instead.
const job = document.getElementById("job");

async function look() {
  const answer = await fetch(job.dataset.state, { cache: "no-store" });
  if (!answer.ok) return;
  // The server's own page, in which every text is escaped.
  const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
  job.replaceChildren(...shown.body.childNodes);
  if (answer.headers.get("X-Ended") === "no") setTimeout(look, 1000);
}

if (job && job.dataset.state) setTimeout(look, 700);
