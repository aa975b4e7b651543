/** Events of the server: one stream for all pages, which is reopened when it breaks. */
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
/**
 * Milliseconds to wait before reopening the stream. While one page replaces another, topics come
 * and go, and should cause only one new stream.
 */
const SETTLE = 50;

/**
 * Calls the listener with events of a topic, until the returned function is called.
 * @param {string} topic
 * @param {(value: any) => void} listener
 */
export function follow(topic, listener) {
  const hearing = listeners.get(topic) ?? new Set();
  listeners.set(topic, hearing);
  hearing.add(listener);
  if (hearing.size === 1) reopen(SETTLE);
  return () => {
    hearing.delete(listener);
    if (hearing.size > 0) return;
    listeners.delete(topic);
    reopen(SETTLE);
  };
}

/**
 * Calls the listener whenever the stream is open again, until the returned function is called. Data
 * that was loaded before may be outdated by then.
 * @param {() => void} listener
 */
export function whenOpened(listener) {
  opened.add(listener);
  return () => void opened.delete(listener);
}

/** @param {number} wait milliseconds */
function reopen(wait) {
  clearTimeout(again);
  again = setTimeout(() => void open(), wait);
}

async function open() {
  stream?.abort();
  const own = (stream = new AbortController());
  // Without other topics, the stream still shows whether the server can be reached.
  const topics = [...new Set(["changes", ...listeners.keys()])].join(",");
  try {
    const response = await ask(addressOf("/events", { topics }), { signal: own.signal });
    if (!response.ok || response.body === null) throw new Error(`answered ${response.status}`);
    become("connected");
    pause = 500;
    for (const listener of opened) listener();
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
  for (const listener of hearing) listener(value);
}

/** @param {Connection} next */
function become(next) {
  if (next === state) return;
  state = next;
  for (const watch of watchers) watch(next);
}

/** Returns whether the server can be reached. */
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
 * Calls the listener with events of a topic while the component is shown.
 * @param {string} topic
 * @param {(value: any) => void} listener
 * @param {readonly unknown[]} [inputs] as in `useEffect`
 */
export function useTopic(topic, listener, inputs = []) {
  useEffect(() => follow(topic, listener), [topic, ...inputs]);
}
