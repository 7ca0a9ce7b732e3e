import { $, call, counted, trouble } from "/common.js";
import { showAsking, startAsking, stopLive } from "/ask.js";
import { showLooking, startLooking } from "/look.js";
import { showTeaching, startTeaching } from "/teach.js";

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab, focus) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", chosen);
    each.tabIndex = chosen ? 0 : -1;
    document.getElementById(each.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  const name = tab.getAttribute("aria-controls");
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  if (name !== "ask") stopLive();
  if (name === "look") refresh();
}

for (const tab of tabs) {
  tab.addEventListener("click", () => select(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) select(tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length], true);
  });
}

async function refresh() {
  try {
    const model = await call("/model");
    document.title = `${model.name} – sparc serve`;
    $("#model-name").textContent = model.name;
    $("#summary").textContent = model.tasks.length
      ? `knows ${counted(model.classes.length, "class", "classes")}, learned in ${counted(model.tasks.length, "task")}`
      : model.exists ? "knows nothing: teach it some classes" : "is not there yet: the first task that you teach makes it";
    trouble(model.trouble);
    showTeaching(model);
    showAsking(model);
    await showLooking(model);
  } catch {
    // which is said at the top of the page
  }
}

// A file that misses every zone would replace the page.
for (const kind of ["dragover", "drop"]) window.addEventListener(kind, (event) => event.preventDefault());
startTeaching(refresh);
startAsking();
startLooking(refresh);
await refresh();
const wanted = tabs.find((tab) => `#${tab.getAttribute("aria-controls")}` === location.hash);
if (wanted) select(wanted);
document.documentElement.dataset.ready = "yes";
