import { $, call, chosenPictures, dropZone, el, percent, say, thumbnail } from "/common.js";
import { closeCamera, openCamera, snapshot } from "/camera.js";

const KEPT = 40;
const LIVE_PAUSE = 60;
const AT_ONCE = 4;

function query() {
  const wanted = new URLSearchParams({ top: 5 });
  if ($("#ask-task").value) wanted.set("task", $("#ask-task").value);
  if ($("#ask-always").checked) wanted.set("always", "1");
  return `/predict?${wanted}`;
}

async function predict(file) {
  const answer = await call(query(), { method: "POST", headers: { "Content-Type": file.type || "application/octet-stream" }, body: file });
  return answer.pictures[0];
}

function headline(found) {
  return found.none_of_these ? "None of these" : found.predictions[0].class;
}

function described(found) {
  const tasks = found.tasks.map((task) => `“${task}”`).join(", ");
  const rows = found.predictions.map(({ class: name, probability }) => {
    const row = el("li", {}, el("span", { class: "name" }, name), el("span", { class: "value" }, percent(100 * probability)));
    row.style.setProperty("--share", `${100 * probability}%`);
    return row;
  });
  return [
    el("h3", { class: found.none_of_these ? "unknown" : "" }, headline(found)),
    el("p", { class: "hint" }, found.none_of_these ? `Most like ${found.predictions[0].class}, of ${tasks}` : `Learned in ${tasks}`),
    // How sure it would be if it had to be one of these says nothing of a picture that is none of them.
    ...(found.none_of_these ? [] : [el("ol", { class: "bars" }, ...rows)]),
  ];
}

async function ask(pictures) {
  if (!pictures.length) return;
  $("#no-answers").hidden = true;
  const waiting = pictures.map(({ file }) => {
    const body = el("div", { class: "said" }, el("p", { class: "hint" }, "Looking…"));
    const card = el("article", { class: "answer" }, body);
    $("#answers").prepend(card);
    thumbnail(file).then((url) => card.prepend(url ? el("img", { src: url, alt: file.name }) : el("span", { class: "no-thumb" }, file.name)));
    return async () => {
      try {
        const found = await predict(file);
        body.replaceChildren(...described(found));
        const sure = found.none_of_these ? "" : `, ${percent(100 * found.predictions[0].probability)}`;
        say(`${file.name}: ${headline(found)}${sure}`);
      } catch (error) {
        body.replaceChildren(el("h3", { class: "unknown" }, file.name), el("p", { class: "problem" }, error.message));
        say(error.message);
      }
    };
  });
  const work = async () => {
    while (waiting.length) await waiting.shift()();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  for (const old of [...$("#answers").children].slice(KEPT)) {
    const image = $("img", old);
    if (image) URL.revokeObjectURL(image.src);
    old.remove();
  }
}

let live = false;
let seen = "";

async function setLive(on) {
  live = on;
  $("#ask-live").setAttribute("aria-pressed", on);
  $("#ask-live").textContent = on ? "Stop the camera" : "Live camera";
  $("#live").hidden = !on;
  $("#ask-problem").textContent = "";
  const video = $("#live-video");
  if (!on) return closeCamera(video);
  try {
    await openCamera(video);
  } catch (error) {
    $("#ask-problem").textContent = error.message;
    return setLive(false);
  }
  return watchLive(video);
}

async function watchLive(video) {
  let begun = performance.now();
  let count = 0;
  while (live) {
    try {
      const blob = await snapshot(video, "image/jpeg");
      const found = await predict(blob);
      if (!live) break;
      $("#live-answer").replaceChildren(...described(found));
      if (headline(found) !== seen) say((seen = headline(found)));
      count += 1;
      const seconds = (performance.now() - begun) / 1000;
      if (seconds > 1) {
        $("#live-note").textContent = `${(count / seconds).toFixed(1)} answers a second`;
        [begun, count] = [performance.now(), 0];
      }
    } catch (error) {
      $("#ask-problem").textContent = error.message;
      return setLive(false);
    }
    await new Promise((resolve) => setTimeout(resolve, LIVE_PAUSE));
  }
  return undefined;
}

export function startAsking() {
  const input = $("#ask-files");
  $("#ask-choose").addEventListener("click", () => input.click());
  input.addEventListener("change", () => ask(chosenPictures(input)));
  dropZone($("#ask"), ask);
  document.addEventListener("paste", (event) => {
    if ($("#ask").hidden) return;
    const files = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
    ask(files.map((file) => ({ file })));
  });
  $("#ask-live").addEventListener("click", () => setLive(!live));
}

export function stopLive() {
  if (live) setLive(false);
}

export function showAsking(model) {
  const select = $("#ask-task");
  const chosen = select.value;
  const options = model.tasks.map(({ name }) => el("option", { value: name }, `classes of “${name}”`));
  select.replaceChildren(el("option", { value: "" }, "all classes"), ...options);
  if (model.tasks.some(({ name }) => name === chosen)) select.value = chosen;
}
