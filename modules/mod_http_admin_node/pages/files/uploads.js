/**
 * Uploads a few files at a time, with progress and speed. Each can be cancelled, and an interrupted
 * upload leaves nothing behind.
 */
import { html } from "htm/preact";
import { addressOf, Button, count, duration, Meter, pageKey, printable, rate, Section, size } from "modhost/admin";
import { useEffect, useRef, useState } from "preact/hooks";
import { within } from "./paths.js";

/** @typedef {{ file: File, name: string }} Chosen `name`: the name with its folders */
/**
 * @typedef {{ id: number, path: string, file: File, state: "waiting" | "running" | "done" |
 * "failed" | "cancelled", sent: number, error?: string, xhr?: XMLHttpRequest }} Upload
 */

const PARALLEL = 3;
const DRAW = 200;
/** Number of uploads that are listed. The others are only counted. */
const LISTED = 8;
/** Milliseconds over which the speed is measured. */
const WINDOW = 4000;

/**
 * Returns the dropped files, including those in dropped folders.
 * @param {DataTransfer} data
 * @returns {Promise<Chosen[]>}
 */
export async function entriesOf(data) {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  return (await Promise.all(entries.map((entry) => filesBelow(entry, "")))).flat();
}

/** @param {any} entry @param {string} folder @returns {Promise<Chosen[]>} */
async function filesBelow(entry, folder) {
  const name = `${folder}${entry.name}`;
  if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), name }];
  const reader = entry.createReader();
  /** @type {any[]} */
  const entries = [];
  // A reader returns a few entries at a time, and none at the end.
  for (;;) {
    const more = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (more.length === 0) break;
    entries.push(...more);
  }
  return (await Promise.all(entries.map((each) => filesBelow(each, `${name}/`)))).flat();
}

/**
 * Returns the files that were chosen in an input.
 * @param {HTMLInputElement} input @returns {Promise<Chosen[]>}
 */
export async function filesOf(input) {
  const chosen = [...(input.files ?? [])].map((file) => ({ file, name: file.webkitRelativePath || file.name }));
  input.value = "";
  return chosen;
}

/** @param {() => Promise<void>} onDone is called after each finished upload, and at the end */
export function useUploads(onDone) {
  const all = useRef(/** @type {Upload[]} */ ([]));
  const samples = useRef(/** @type {[number, number][]} */ ([]));
  const [, draw] = useState(0);
  const isActive = all.current.some(({ state }) => state === "waiting" || state === "running");
  useEffect(() => {
    if (!isActive) return undefined;
    const timer = setInterval(() => {
      const now = performance.now();
      samples.current = [...samples.current.filter(([at]) => now - at < WINDOW), [now, sentOf(all.current)]];
      draw((value) => value + 1);
    }, DRAW);
    const warn = (/** @type {BeforeUnloadEvent} */ event) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => {
      clearInterval(timer);
      window.removeEventListener("beforeunload", warn);
    };
  }, [isActive]);

  function next() {
    const running = all.current.filter(({ state }) => state === "running").length;
    const waiting = all.current.filter(({ state }) => state === "waiting").slice(0, PARALLEL - running);
    for (const upload of waiting) {
      start(upload, () => {
        next();
        if (!all.current.some(({ state }) => state === "waiting" || state === "running")) void onDone();
      });
    }
    draw((value) => value + 1);
  }

  return {
    all: all.current,
    speed: speedOf(samples.current),
    isActive,
    /** @param {string} folder @param {Chosen[]} chosen */
    add(folder, chosen) {
      all.current = [
        ...(isActive ? all.current : []),
        ...chosen.map(({ file, name }) => ({
          id: (last += 1),
          path: within(folder, name),
          file,
          state: /** @type {const} */ ("waiting"),
          sent: 0,
        })),
      ];
      samples.current = [];
      next();
    },
    /** @param {Upload[]} which */
    cancel(which) {
      for (const upload of which) {
        if (upload.state === "done" || upload.state === "failed") continue;
        upload.state = "cancelled";
        upload.xhr?.abort();
      }
      next();
      void onDone();
    },
    clear() {
      all.current = [];
      draw((value) => value + 1);
    },
  };
}

let last = 0;

/** @param {Upload} upload @param {() => void} ended */
function start(upload, ended) {
  const xhr = new XMLHttpRequest();
  upload.state = "running";
  upload.xhr = xhr;
  // `fetch` does not report upload progress.
  xhr.open("POST", addressOf("/node/files/content", { path: upload.path, replace: true }));
  xhr.setRequestHeader("X-Modhost-Page", pageKey);
  xhr.setRequestHeader("X-Modhost-Admin", "1");
  xhr.setRequestHeader("Content-Type", "application/octet-stream");
  xhr.upload.onprogress = ({ loaded }) => {
    upload.sent = loaded;
  };
  xhr.onloadend = () => {
    if (upload.state === "running") {
      upload.state = xhr.status === 200 ? "done" : "failed";
      if (xhr.status === 200) upload.sent = upload.file.size;
      else upload.error = messageOf(xhr);
    }
    delete upload.xhr;
    ended();
  };
  xhr.send(upload.file);
}

/** @param {XMLHttpRequest} xhr */
function messageOf({ status, responseText }) {
  if (status === 0) return "The connection was lost.";
  try {
    return JSON.parse(responseText).error.message;
  } catch {
    return `The server responded with ${status}.`;
  }
}

/** @param {readonly Upload[]} all */
const sentOf = (all) => all.reduce((sum, { sent }) => sum + sent, 0);

/**
 * Returns the speed in bytes per second.
 * @param {readonly [number, number][]} samples
 */
function speedOf(samples) {
  const first = samples[0];
  const end = samples.at(-1);
  if (first === undefined || end === undefined || end[0] - first[0] < 300) return undefined;
  return ((end[1] - first[1]) / (end[0] - first[0])) * 1000;
}

/** @param {{ of: ReturnType<typeof useUploads> }} props */
export function Uploads({ of: { all, speed, isActive, cancel, clear } }) {
  if (all.length === 0) return null;
  const bytes = all.reduce((sum, { file }) => sum + file.size, 0);
  const sent = sentOf(all);
  const of = (/** @type {Upload["state"]} */ wanted) => all.filter(({ state }) => state === wanted);
  const done = of("done");
  const failed = of("failed");
  const cancelled = of("cancelled");
  const left = speed ? `, ${duration(((bytes - sent) / speed) * 1000)} left` : "";
  const title = isActive
    ? `Uploading: ${count(done.length)} of ${count(all.length)}`
    : [
        `Uploaded ${count(done.length)} of ${count(all.length)}`,
        failed.length > 0 && `${count(failed.length)} failed`,
        cancelled.length > 0 && `${count(cancelled.length)} cancelled`,
      ]
        .filter(Boolean)
        .join(", ");
  const actions = isActive
    ? html`<${Button} onClick=${() => cancel(all)}>Cancel all<//>`
    : html`<${Button} kind="quiet" onClick=${clear}>Close<//>`;
  const listed = [...of("running"), ...failed, ...of("waiting")].slice(0, LISTED);
  return html`<${Section} title=${title} actions=${actions}>
    <p role="status">${size(sent)} of ${size(bytes)}${isActive && speed !== undefined ? `, ${rate(speed)}${left}` : ""}</p>
    <${Meter} value=${bytes === 0 ? done.length : sent} max=${bytes === 0 ? all.length : bytes} label="Progress of all uploads" />
    <ul class="uploads">${listed.map(
      (upload) => html`<li key=${upload.id}>
      <bdi>${printable(upload.path)}</bdi>
      <span class=${upload.state === "failed" ? "bad-text" : "soft"}>${upload.error ?? (upload.state === "running" ? `${size(upload.sent)} of ${size(upload.file.size)}` : upload.state)}</span>
      ${upload.state !== "failed" && html`<${Button} kind="quiet" onClick=${() => cancel([upload])} aria-label=${`Cancel ${upload.path}`}>Cancel<//>`}
    </li>`,
    )}</ul>
  <//>`;
}
