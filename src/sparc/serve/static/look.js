import { $, byClass, call, chosenPictures, counted, dropZone, duration, el, percent, say, sendForm, sendJson, size } from "/common.js";

let changed = () => {};
const WORDS = new Set(["classes", "tasks", "most like"]);

function table(element, titles, rows) {
  const head = titles.map((title) => el("th", { scope: "col", class: WORDS.has(title) ? "words" : null }, title));
  element.replaceChildren(el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

const when = (text) => new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

function tools(kind, name) {
  const short = kind === "class" ? name : `task ${name}`;
  return el("td", { class: "tools" },
    el("button", { type: "button", class: "quiet", "aria-label": `Rename ${short}`, onclick: () => rename(kind, name) }, "Rename"),
    el("button", { type: "button", class: "quiet", "aria-label": `Forget ${short}`, onclick: () => forget(kind, name) }, "Forget"));
}

function answered(dialog) {
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
    dialog.showModal();
  });
}

async function change(path, value) {
  $("#look-problem").textContent = $("#look-note").textContent = "";
  try {
    const { message } = await sendJson(path, value);
    $("#look-note").textContent = message;
  } catch (error) {
    $("#look-problem").textContent = error.message;
  }
  changed();
}

async function rename(kind, old) {
  $("#rename-title").textContent = `Rename ${kind} “${old}”`;
  const input = $("#rename-name");
  input.value = old;
  const ok = answered($("#rename"));
  input.select();
  if ((await ok) && input.value.trim() && input.value !== old) await change("/rename", { kind, old, new: input.value });
}

async function forget(kind, name) {
  $("#forget-title").textContent = `Forget ${kind} “${name}”?`;
  $("#forget-note").textContent = kind === "class"
    ? "The model will not know it any more. The pictures are gone already, so this cannot be undone, unless you have a copy of the file."
    : "All of its classes go. The pictures are gone already, so this cannot be undone, unless you have a copy of the file.";
  if (await answered($("#forget"))) await change("/forget", kind === "class" ? { classes: [name] } : { task: name });
}

async function test(pictures) {
  $("#test-problem").textContent = "";
  const { classes } = byClass(pictures, { toTest: true });
  if (!classes.size) {
    $("#test-problem").textContent = "There are no class folders with pictures in it: put the pictures of each class into a folder named after it.";
    return;
  }
  const form = new FormData();
  for (const [name, files] of classes) for (const file of files) form.append(name, file, file.name);
  const count = [...classes.values()].flat().length;
  $("#tested").replaceChildren(el("p", { class: "hint" }, `Looking at ${counted(count, "picture")}…`));
  try {
    const found = await sendForm("/test", form, () => {});
    $("#tested").replaceChildren(...confusion(found));
    $("#tested").focus();
    say(`${percent(found.accuracy_in_all)} right among all classes`);
  } catch (error) {
    $("#tested").replaceChildren();
    $("#test-problem").textContent = error.message;
  }
}

function confusion(found) {
  const taken = new Set(found.classes.flatMap((each) => [each.class, ...Object.keys(each.taken_for)]));
  const columns = [...taken];
  const head = el("tr", {}, el("th", { scope: "col" }, "class"), ...columns.map((name) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, "right"));
  const rows = found.classes.map((each) => {
    const cells = columns.map((name) => {
      const count = each.taken_for[name] ?? 0;
      const cell = el("td", { class: name === each.class ? "hit" : count ? "miss" : "" }, count ? String(count) : "·");
      cell.style.setProperty("--share", `${(40 * count) / each.pictures}%`);
      return cell;
    });
    return el("tr", {}, el("th", { scope: "row" }, each.class), ...cells, el("td", {}, percent((100 * each.right) / each.pictures)));
  });
  const facts = [
    ["pictures", found.pictures.toLocaleString("en")], ["right among all classes", percent(found.accuracy_in_all)],
    ["right among its task’s", percent(found.accuracy_in_task)], ["probabilities are off by", percent(found.calibration_error)],
    ["pass as known", percent(found.known_accepted)],
  ];
  const parts = [
    el("ul", { class: "facts" }, ...facts.map(([title, value]) => el("li", {}, el("b", {}, title), value))),
    el("p", { class: "hint" }, "Rows are what the pictures show, columns what they are taken for."),
    el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Confusion" },
      el("table", { class: "confusion" }, el("thead", {}, head), el("tbody", {}, ...rows))),
  ];
  if (found.skipped.length) {
    const lines = found.skipped.slice(0, 10).map(({ path, reason }) => el("li", {}, `${path}: ${reason}`));
    parts.push(el("p", {}, `${counted(found.skipped.length, "picture")} skipped:`), el("ul", {}, ...lines));
  }
  return parts;
}

export async function showLooking(model) {
  const knows = model.tasks.length > 0;
  $("#nothing-yet").hidden = knows;
  $("#knows").hidden = !knows;
  if (!knows) return;
  const facts = [
    ["classes", String(model.classes.length)], ["tasks", String(model.tasks.length)], ["pictures seen", model.pictures.toLocaleString("en")],
    ["file", size(model.bytes)], ["parameters", model.parameters.all.toLocaleString("en")],
    ["start", model.start], ["none of these", model.none_of_these], ["made with", model.made_with],
  ];
  $("#facts").replaceChildren(...facts.map(([title, value]) => el("li", {}, el("b", {}, title), value)));
  table($("#tasks"), ["task", "classes", "pictures", "right in the task", "right among all then", "learned", "took", ""], model.tasks.map((task) =>
    el("tr", {}, el("th", { scope: "row" }, task.name), el("td", { class: "words" }, task.classes.map(({ name }) => name).join(", ")),
      el("td", {}, task.pictures.toLocaleString("en")), el("td", {}, percent(task.accuracy_in_task)), el("td", {}, percent(task.accuracy_in_all)),
      el("td", {}, when(task.learned)), el("td", {}, duration(task.seconds)), tools("task", task.name))));
  table($("#class-table"), ["class", "pictures", "tasks", "last learned", "most like", ""], model.classes.map((each) =>
    el("tr", {}, el("th", { scope: "row" }, each.name), el("td", {}, each.pictures.toLocaleString("en")), el("td", { class: "words" }, each.tasks.join(", ")),
      el("td", {}, when(each.learned)), el("td", { class: "words" }, each.most_like ?? "–"), tools("class", each.name))));
  const { figures } = await call("/figures");
  const drawn = figures.map((text) => {
    const svg = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    return el("figure", {}, document.importNode(svg, true));
  });
  $("#figures").replaceChildren(...drawn);
}

export function startLooking(whenChanged) {
  changed = whenChanged;
  $("#test-choose").addEventListener("click", () => $("#test-files").click());
  $("#test-files").addEventListener("change", () => test(chosenPictures($("#test-files"))));
  dropZone($("#test-drop"), test);
  $("#download-onnx").addEventListener("click", async (event) => {
    // Fetched first, as it may be refused and takes a while.
    event.preventDefault();
    const link = event.currentTarget;
    if (link.getAttribute("aria-busy")) return;
    link.setAttribute("aria-busy", "true");
    $("#look-problem").textContent = "";
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error((await answer.json()).error);
      const name = /filename="([^"]*)"/.exec(answer.headers.get("Content-Disposition"))?.[1] ?? "model.onnx";
      const url = URL.createObjectURL(await answer.blob());
      el("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    } catch (error) {
      $("#look-problem").textContent = error.message;
    }
    link.removeAttribute("aria-busy");
  });
}
