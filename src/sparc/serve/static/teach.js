import { $, byClass, call, chosenPictures, counted, dropZone, duration, el, percent, say, sendForm, thumbnail } from "/common.js";
import { takePictures } from "/camera.js";

const BUSY = ["starting", "reading", "learning", "saving"];
const SHOWN = 24;
const classes = new Set();
let last = { state: "idle", number: 0 };
let sending = false;
let mine = 0;
let known = false;
let changed = () => {};

// One class that is being collected: its name, and pictures that stay in the browser until Learn is pressed.
class Collected {
  constructor(name = "") {
    this.pictures = new Map();
    this.all = false;
    this.element = $("#class-template").content.cloneNode(true).firstElementChild;
    this.input = $(".class-name", this.element);
    this.input.value = name;
    this.input.addEventListener("input", tally);
    $(".remove-class", this.element).addEventListener("click", () => this.remove());
    const show = $(".show-all", this.element);
    show.addEventListener("click", () => ((this.all = true), this.draw()));
    for (const [button, input] of [[".choose", ".files"], [".choose-folder", ".folder"]]) {
      const field = $(input, this.element);
      $(button, this.element).addEventListener("click", () => field.click());
      field.addEventListener("change", () => this.take(chosenPictures(field)));
    }
    $(".take", this.element).addEventListener("click", () =>
      takePictures(`Pictures of ${this.name || "this class"}`, (file) => this.add([file])));
    dropZone(this.element, (pictures) => this.take(pictures));
    this.element.addEventListener("paste", (event) => {
      const files = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
      if (files.length) {
        event.preventDefault();
        this.add(files);
      }
    });
    classes.add(this);
    $("#classes").append(this.element);
    this.draw();
  }

  get name() {
    return this.input.value.trim();
  }

  take(pictures) {
    if (!this.name && pictures.length && pictures[0].folders.length) this.input.value = pictures[0].folders.at(-1);
    this.add(pictures.map(({ file }) => file));
  }

  add(files) {
    for (const file of files) {
      const key = `${file.name}/${file.size}/${file.lastModified}`;
      if (!this.pictures.has(key)) this.pictures.set(key, { file });
    }
    this.draw();
    say(`${this.name || "this class"}: ${counted(this.pictures.size, "picture")}`);
  }

  draw() {
    const list = $(".thumbs", this.element);
    const shown = [...this.pictures].slice(0, this.all ? Infinity : SHOWN);
    const there = new Map([...list.children].map((item) => [item.dataset.key, item]));
    for (const [key, picture] of shown) {
      if (!there.has(key)) list.append(this.item(key, picture));
      there.delete(key);
    }
    for (const item of there.values()) item.remove();
    const rest = this.pictures.size - shown.length;
    const more = $(".show-all", this.element);
    more.hidden = !rest;
    more.textContent = `Show ${rest.toLocaleString("en")} more`;
    $(".invite", this.element).hidden = this.pictures.size > 0;
    $(".count", this.element).textContent = this.pictures.size ? counted(this.pictures.size, "picture") : "no pictures";
    tally();
  }

  item(key, picture) {
    const { name } = picture.file;
    const remove = () => {
      const neighbour = item.nextElementSibling ?? item.previousElementSibling;
      if (picture.url) URL.revokeObjectURL(picture.url);
      this.pictures.delete(key);
      this.draw();
      (neighbour?.querySelector("button") ?? $(".choose", this.element)).focus();
    };
    const item = el("li", { title: name }, el("button", { type: "button", "aria-label": `Remove ${name}`, onclick: remove }, "×"));
    item.dataset.key = key;
    thumbnail(picture.file).then((url) => {
      picture.url = url;
      item.prepend(url ? el("img", { src: url, alt: name }) : el("span", { class: "no-thumb" }, name));
    });
    return item;
  }

  remove() {
    classes.delete(this);
    this.clear();
    this.element.remove();
    if (!classes.size) new Collected();
    tally();
    $("#add-class").focus();
  }

  clear() {
    for (const { url } of this.pictures.values()) if (url) URL.revokeObjectURL(url);
    this.pictures.clear();
  }
}

function tally() {
  const filled = [...classes].filter((each) => each.pictures.size);
  const pictures = filled.reduce((sum, each) => sum + each.pictures.size, 0);
  $("#collected").textContent = pictures ? `${counted(pictures, "picture")} of ${counted(filled.length, "class", "classes")}` : "";
  $("#learn").disabled = sending || BUSY.includes(last.state);
}

function takeFolders(pictures) {
  const { classes: named, left } = byClass(pictures);
  $("#teach-note").textContent = left ? `${counted(left, "picture")} of the test part ${left === 1 ? "is" : "are"} left out: give Look the same folder to test with them.` : "";
  if (!named.size) return problem("There are no class folders in it: put the pictures of each class into a folder named after it.");
  for (const each of [...classes]) if (!each.name && !each.pictures.size) (classes.delete(each), each.element.remove());
  for (const [name, files] of [...named].sort(([one], [other]) => one.localeCompare(other))) {
    const there = [...classes].find((each) => each.name === name) ?? new Collected(name);
    there.add(files);
  }
  const tops = new Set(pictures.map(({ folders }) => folders[0]));
  if (!$("#task").value && tops.size === 1 && named.size > 1) [$("#task").value] = tops;
  return problem("");
}

function problem(text, field) {
  $("#teach-problem").textContent = text;
  field?.focus();
}

async function learn(event) {
  event.preventDefault();
  const filled = [...classes].filter((each) => each.pictures.size);
  const nameless = filled.find((each) => !each.name);
  if (!filled.length) return problem("There is nothing to learn from: give a class some pictures.", $("#classes input"));
  if (nameless) return problem("A class has no name: give it one.", nameless.input);
  const empty = [...classes].find((each) => each.name && !each.pictures.size);
  if (empty) return problem(`“${empty.name}” has no pictures: give it some, or remove the class.`, empty.input);
  problem("");
  const form = new FormData();
  for (const field of ["task", "effort", "start", "fit", "flip"]) {
    const control = $("#teach-form").elements[field];
    if (control.value && !control.closest("[hidden]")) form.append(field, control.value);
  }
  for (const each of filled) for (const { file } of each.pictures.values()) form.append(each.name, file, file.name);
  sending = true;
  $("#outcome").hidden = true;
  tally();
  show({ state: "sending", share: 0, task: $("#task").value });
  $("#progress").scrollIntoView({ block: "nearest" });
  try {
    const begun = await sendForm("/learn", form, (share) => show({ state: "sending", share, task: $("#task").value }));
    mine = begun.number;
    last = begun;
  } catch (error) {
    problem(error.message);
    show(last);
  }
  sending = false;
  tally();
  return watch();
}

const WORDS = {
  sending: "Sending the pictures", starting: "Starting", reading: "Looking at the pictures", learning: "Learning", saving: "Saving",
};

function show(progress) {
  const busy = progress.state === "sending" || BUSY.includes(progress.state);
  $("#progress").hidden = !busy;
  if (!busy) return;
  $("#progress-title").textContent = WORDS[progress.state] + (progress.task ? `: ${progress.task}` : "");
  const bar = $("#progress-bar");
  if (progress.share == null) bar.removeAttribute("value");
  else bar.value = progress.share;
  const parts = [
    progress.epoch && `epoch ${progress.epoch} of ${progress.epochs}`,
    progress.loss != null && `loss ${progress.loss.toFixed(3)}`,
    progress.accuracy != null && `${percent(progress.accuracy)} of held-out pictures right`,
    progress.seconds_left != null && `${duration(progress.seconds_left)} left`,
    progress.stopping && "stopping",
  ];
  $("#progress-note").textContent = parts.filter(Boolean).join(", ");
  $("#stop").disabled = progress.stopping || progress.state === "sending" || progress.state === "saving";
}

function conclude(progress) {
  const outcome = $("#outcome");
  const learned = progress.learned;
  const parts = [el("h2", {}, learned ? `Learned in ${duration(progress.seconds)}` : { stopped: "Stopped", died: "It went wrong" }[progress.state] ?? "Not learned")];
  const mineNow = learned && progress.number === mine;
  parts.push(el("p", {}, progress.message + (mineNow ? " They are taken off this page as well." : "")));
  if (learned) {
    const rows = learned.classes.map((name, index) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, learned.pictures[index].toLocaleString("en")),
      el("td", {}, learned.known_before.includes(name) ? "known before; of pictures taught before, more are right than of new ones" : "new")));
    const head = ["class", "pictures", ""].map((title) => el("th", { scope: "col" }, title));
    parts.push(el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows))));
    const right = learned.accuracy_in_all == null
      ? "No picture was held out, so it is not known how many are right."
      : `Of ${counted(learned.held_out, "picture")} held out, ${percent(learned.accuracy_in_all)} are right among all ${counted(learned.classes_in_all, "class", "classes")}` +
        (learned.accuracy_in_task == null ? "." : `, and ${percent(learned.accuracy_in_task)} among this task’s.`);
    parts.push(el("p", {}, right));
    if (learned.start) parts.push(el("p", { class: "hint" }, `A new model, ${learned.start}.`));
    if (learned.none_of_these) parts.push(el("p", { class: "hint" }, `“None of these” is not said yet: ${learned.none_of_these}.`));
    if (learned.skipped.length) {
      const lines = learned.skipped.slice(0, 10).map(({ path, reason }) => el("li", {}, `${path}: ${reason}`));
      parts.push(el("p", {}, `${counted(learned.skipped.length, "picture")} skipped:`), el("ul", {}, ...lines));
    }
  }
  outcome.replaceChildren(...parts);
  outcome.className = `panel ${learned ? "good" : "bad"}`;
  outcome.hidden = false;
  say(`${progress.message}`);
  if (mineNow) {
    for (const each of classes) (each.clear(), each.element.remove());
    classes.clear();
    $("#task").value = $("#teach-note").textContent = "";
    new Collected();
    new Collected();
    outcome.focus();
  }
}

let watching = 0;

async function watch() {
  clearTimeout(watching);
  if (!sending) {
    try {
      const before = last;
      last = await call("/progress");
      show(last);
      const ended = !BUSY.includes(last.state) && last.state !== "idle";
      const news = BUSY.includes(before.state) || (before.number !== last.number && (known || last.state !== "learned"));
      known = true;
      if (ended && news) {
        conclude(last);
        changed();
      }
      tally();
    } catch {
      // which is said at the top of the page
    }
  }
  watching = setTimeout(watch, BUSY.includes(last.state) ? 400 : 4000);
}

// `whenChanged` is called when the model has.
export function startTeaching(whenChanged) {
  changed = whenChanged;
  new Collected();
  new Collected();
  $("#add-class").addEventListener("click", () => new Collected().input.focus());
  $("#add-folders").addEventListener("click", () => $("#folders").click());
  $("#folders").addEventListener("change", () => takeFolders(chosenPictures($("#folders"))));
  dropZone($("#teach"), takeFolders);
  $("#teach-form").addEventListener("submit", learn);
  $("#stop").addEventListener("click", async () => {
    try {
      last = await call("/stop", { method: "POST" });
      show(last);
    } catch (error) {
      problem(error.message);
    }
    watch();
  });
  watch();
}

export function showTeaching(model) {
  for (const field of document.querySelectorAll(".of-new")) field.hidden = model.exists;
}
