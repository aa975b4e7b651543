import assert from "node:assert/strict";
import { METHODS } from "node:http";
import { test } from "node:test";
import type { HttpMethod, Method } from "modhost/types";

/** The compiler refuses this if a method is missing here, or unknown to the type. */
const methods: Record<HttpMethod, true> = {
  ACL: true,
  BIND: true,
  CHECKOUT: true,
  COPY: true,
  DELETE: true,
  GET: true,
  HEAD: true,
  LINK: true,
  LOCK: true,
  "M-SEARCH": true,
  MERGE: true,
  MKACTIVITY: true,
  MKCALENDAR: true,
  MKCOL: true,
  MOVE: true,
  NOTIFY: true,
  OPTIONS: true,
  PATCH: true,
  POST: true,
  PROPFIND: true,
  PROPPATCH: true,
  PURGE: true,
  PUT: true,
  QUERY: true,
  REBIND: true,
  REPORT: true,
  SEARCH: true,
  SOURCE: true,
  SUBSCRIBE: true,
  TRACE: true,
  UNBIND: true,
  UNLINK: true,
  UNLOCK: true,
  UNSUBSCRIBE: true,
};
const socket: Exclude<Method, HttpMethod> = "WS";

test("the methods in the type of route keys are those of Node's parser, without CONNECT", () => {
  assert.deepEqual(Object.keys(methods).sort(), METHODS.filter((method) => method !== "CONNECT").sort());
});

test("the pseudo-method of websockets is not a method of HTTP", () => {
  assert.ok(!METHODS.includes(socket));
});
