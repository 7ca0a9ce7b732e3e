export const $ = (selector, within = document) => within.querySelector(selector);

export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export const counted = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
export const percent = (value) => (value == null ? "–" : `${value.toFixed(1)} %`);

export function size(bytes) {
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.round(bytes / 1e3)} kB`;
}

export function duration(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

// For screen readers: what has just happened, where that cannot be seen.
export function say(text) {
  $("#status").textContent = text;
}

const GONE = "The server does not answer: is sparc serve still running?";

export async function call(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    trouble(GONE);
    throw new Error(GONE);
  }
  if ($("#trouble").textContent === GONE) trouble("");
  return understood(answer.status, await answer.text());
}

export function sendJson(path, value) {
  return call(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
}

// Like call, for forms that take their time: tells which share has been sent.
export function sendForm(path, form, sent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.upload.addEventListener("progress", (event) => event.lengthComputable && sent(event.loaded / event.total));
    request.addEventListener("error", () => reject(new Error(`${GONE} Or what was sent is too large for it.`)));
    request.addEventListener("load", () => {
      try {
        resolve(understood(request.status, request.responseText));
      } catch (error) {
        reject(error);
      }
    });
    request.send(form);
  });
}

function understood(status, text) {
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    said = {};
  }
  if (status >= 400) throw new Error(said.error ?? `the server has refused this (${status})`);
  return said;
}

export function trouble(text) {
  $("#trouble").textContent = text;
  $("#trouble").hidden = !text;
}

const PICTURE = /\.(png|jpe?g|jpe|jfif|webp|bmp|dib|gif|tiff?|p[pgbn]m|apng|hei[cf]|hif|avif|jxl|jp2)$/i;

const isPicture = ({ file, folders }) =>
  !file.name.startsWith(".") && !folders.some((name) => name.startsWith(".") || name === "__MACOSX") &&
  (PICTURE.test(file.name) || (file.type.startsWith("image/") && file.type !== "image/svg+xml"));

// Pictures that were dropped or pasted, with the folders that each lay in.
export async function droppedPictures(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === "file");
  // All at once: what was dropped is gone after the first wait.
  const entries = items.map((item) => [item.webkitGetAsEntry?.(), item.getAsFile()]);
  const found = [];
  for (const [entry, file] of entries) {
    if (entry?.isDirectory) await walk(entry, [entry.name], found);
    else if (file) found.push({ file, folders: [] });
  }
  return found.filter(isPicture);
}

async function walk(directory, folders, found) {
  const reader = directory.createReader();
  for (;;) {
    const entries = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!entries.length) return;
    for (const entry of entries) {
      if (entry.isDirectory) await walk(entry, [...folders, entry.name], found);
      else found.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), folders });
    }
  }
}

export function chosenPictures(input) {
  const found = [...input.files].map((file) => ({ file, folders: (file.webkitRelativePath || file.name).split("/").slice(0, -1) }));
  input.value = "";
  return found.filter(isPicture);
}

const TEST_PARTS = ["test", "val", "valid", "validation"];

// The part of a folder that `sparc learn` learns from, or `sparc test` tests with; undefined where that is all of it.
function partOf(pictures, toTest) {
  const names = (depth) => new Set(pictures.filter(({ folders }) => folders.length > depth).map(({ folders }) => folders[1].toLowerCase()));
  const below = names(1);
  const parts = names(2); // which hold folders themselves
  const test = TEST_PARTS.find((name) => parts.has(name));
  if (toTest) return test;
  return parts.has("train") && (test || below.size === 1) ? "train" : undefined;
}

// Files by the folder right below the one on top, or by that one where there is none below. Of a folder that is split
// into train and test only one part is taken, by the folders in it; `left` counts pictures to test with that are not.
export function byClass(pictures, { toTest = false } = {}) {
  const tops = new Set(pictures.map(({ folders }) => folders[0]?.toLowerCase()));
  // Both parts may come without the folder that they lie in.
  const bare = tops.has("train") && TEST_PARTS.some((name) => tops.has(name));
  const trees = new Map();
  for (const { file, folders } of pictures.filter(({ folders }) => folders.length)) {
    const top = bare ? "" : folders[0];
    if (!trees.has(top)) trees.set(top, []);
    trees.get(top).push({ file, folders: bare ? ["", ...folders] : folders });
  }
  const classes = new Map();
  let left = 0;
  for (const tree of trees.values()) {
    const part = partOf(tree, toTest);
    for (const { file, folders } of tree) {
      const within = folders[1]?.toLowerCase();
      if (part && within !== part) {
        if (TEST_PARTS.includes(within)) left += 1;
        continue;
      }
      const name = part ? folders[2] : folders[1] ?? folders[0];
      if (!name) continue; // beside the class folders of a part
      if (!classes.has(name)) classes.set(name, []);
      classes.get(name).push(file);
    }
  }
  return { classes, left };
}

export function dropZone(element, take) {
  let depth = 0;
  const show = (change) => {
    depth = change;
    element.classList.toggle("over", depth > 0);
  };
  element.addEventListener("dragenter", (event) => (event.preventDefault(), show(depth + 1)));
  element.addEventListener("dragleave", () => show(Math.max(depth - 1, 0)));
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    show(0);
    take(await droppedPictures(event.dataTransfer));
  });
}

// A small copy, so that hundreds of photographs do not fill the memory; null where the browser cannot read it.
export async function thumbnail(file) {
  try {
    const bitmap = await createImageBitmap(file, { resizeHeight: 144, resizeQuality: "medium" });
    const canvas = el("canvas", { width: bitmap.width, height: bitmap.height });
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    bitmap.close();
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/webp", 0.8));
    return URL.createObjectURL(blob);
  } catch {
    return null;
  }
}
