import { $ } from "/common.js";

const BURST_SECONDS = 0.2;

// The camera's stream in a video element, or a sentence on why there is none.
export async function openCamera(video) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Error("The browser gives a camera only to pages on this machine (127.0.0.1) or over https.");
  }
  try {
    const wanted = { video: { facingMode: "environment", width: { ideal: 640 }, height: { ideal: 480 } }, audio: false };
    video.srcObject = await navigator.mediaDevices.getUserMedia(wanted);
  } catch (error) {
    throw new Error(error.name === "NotFoundError" ? "There is no camera." : "The camera may not be used: allow it in the browser.");
  }
  await video.play();
}

export function closeCamera(video) {
  for (const track of video.srcObject?.getTracks() ?? []) track.stop();
  video.srcObject = null;
}

export function snapshot(video, type = "image/png") {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
  canvas.getContext("2d").drawImage(video, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, type, 0.9));
}

let taken = 0;

// Takes pictures until somebody is done.
export async function takePictures(title, take) {
  const [dialog, video, note, burst] = ["#camera", "#camera-video", "#camera-note", "#camera-burst"].map((id) => $(id));
  $("#camera-title").textContent = title;
  note.textContent = "";
  dialog.showModal();
  let count = 0;
  let timer = 0;
  const one = async () => {
    const blob = await snapshot(video);
    if (!blob) return;
    taken += 1;
    count += 1;
    take(new File([blob], `camera-${Date.now()}-${taken}.png`, { type: blob.type }));
    note.textContent = count === 1 ? "1 picture taken" : `${count} pictures taken`;
  };
  const setBurst = (on) => {
    clearInterval(timer);
    timer = on ? setInterval(one, 1000 * BURST_SECONDS) : 0;
    burst.setAttribute("aria-pressed", on);
    burst.textContent = on ? "Stop" : "Take several a second";
  };
  setBurst(false);
  $("#camera-take").onclick = one;
  burst.onclick = () => setBurst(!timer);
  $("#camera-close").onclick = () => dialog.close();
  dialog.onclose = () => {
    setBurst(false);
    closeCamera(video);
  };
  try {
    await openCamera(video);
    if (!dialog.open) closeCamera(video);
    $("#camera-take").focus();
  } catch (error) {
    note.textContent = error.message;
  }
}
