/** What happens in the server, as it happens: one stream of events for all pages, which comes back when it was cut. */
import { useEffect, useState } from "preact/hooks";
import { addressOf, ask } from "./api.js";

/** @typedef {"connecting" | "connected" | "lost"} Connection */

/** @type {Map<string, Set<(value: any) => void>>} */
const listeners = new Map();
/** @type {Set<(state: Connection) => void>} */
const watchers = new Set();
/** @type {Set<() => void>} */
const opened = new Set();
/** @type {Connection} */
let state = "connecting";
/** @type {AbortController | undefined} */
let stream;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let again;
let pause = 500;
const MAX_PAUSE = 10_000;
/** Topics that come and go while a page is exchanged for another make one new stream. */
const SETTLE = 50;

/**
 * Hears events of a topic, until the function that this gives is called.
 * @param {string} topic
 * @param {(value: any) => void} hear
 */
export function follow(topic, hear) {
  const hearing = listeners.get(topic) ?? new Set();
  listeners.set(topic, hearing);
  hearing.add(hear);
  if (hearing.size === 1) reopen(SETTLE);
  return () => {
    hearing.delete(hear);
    if (hearing.size > 0) return;
    listeners.delete(topic);
    reopen(SETTLE);
  };
}

/**
 * Hears, until the function that this gives is called, that events come from now on: what was loaded before may lack what
 * happened between that and now.
 * @param {() => void} hear
 */
export function whenOpened(hear) {
  opened.add(hear);
  return () => void opened.delete(hear);
}

/** @param {number} wait milliseconds */
function reopen(wait) {
  clearTimeout(again);
  again = setTimeout(() => void open(), wait);
}

async function open() {
  stream?.abort();
  const own = (stream = new AbortController());
  // With no topic there is still a need to know whether the server is there.
  const topics = [...new Set(["changes", ...listeners.keys()])].join(",");
  try {
    const response = await ask(addressOf("/events", { topics }), { signal: own.signal });
    if (!response.ok || response.body === null) throw new Error(`answered ${response.status}`);
    become("connected");
    pause = 500;
    for (const hear of opened) hear();
    await read(response.body);
  } catch {}
  if (own.signal.aborted) return;
  become("lost");
  reopen(pause);
  pause = Math.min(pause * 1.6, MAX_PAUSE);
}

/** @param {ReadableStream<Uint8Array>} body */
async function read(body) {
  let text = "";
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    const events = (text + value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) deliver(event);
  }
}

/** @param {string} event */
function deliver(event) {
  let topic = "";
  let data = "";
  for (const line of event.split("\n")) {
    if (line.startsWith("event:")) topic = line.slice(6).trim();
    else if (line.startsWith("data:")) data += line.slice(5);
  }
  const hearing = listeners.get(topic);
  if (data === "" || hearing === undefined) return;
  const value = JSON.parse(data);
  for (const hear of hearing) hear(value);
}

/** @param {Connection} next */
function become(next) {
  if (next === state) return;
  state = next;
  for (const watch of watchers) watch(next);
}

/** Whether the server is there. */
export function useConnection() {
  const [value, set] = useState(state);
  useEffect(() => {
    watchers.add(set);
    set(state);
    if (stream === undefined) reopen(0);
    return () => void watchers.delete(set);
  }, []);
  return value;
}

/**
 * Hears a topic for as long as the component is shown.
 * @param {string} topic
 * @param {(value: any) => void} hear
 * @param {readonly unknown[]} [inputs] as of `useEffect`
 */
export function useTopic(topic, hear, inputs = []) {
  useEffect(() => follow(topic, hear), [topic, ...inputs]);
}
