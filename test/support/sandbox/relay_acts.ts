/**
 * Messages that a hostile module sends to its host past the module object: malformed, forged and
 * countless ones.
 */

/** Functions with which hostile code speaks to the host past the module object. */
export const raw = `
import { writeSync } from "node:fs";
import { serialize } from "node:v8";
const send = (bytes) => {
  for (let at = 0; at < bytes.length; ) try { at += writeSync(3, bytes, at); } catch (error) { if (error.code !== "EAGAIN") return; }
};
const frame = (value, body = serialize(value)) => {
  const head = Buffer.alloc(4);
  head.writeUInt32BE(body.length);
  send(Buffer.concat([head, body]));
};
const call = (name, ...values) => frame({ call: name, id: undefined, values });
const ask = (name, ...values) => frame({ call: name, id: 999_999, values });
`;

/** The code of each act, and the reason for which the sandbox is ended; undefined if it is not. */
export const acts: Readonly<Record<string, readonly [code: string, reason: RegExp | undefined]>> = {
  garbage: ["send(Buffer.alloc(64, 0x55))", /a message of 1431655765 bytes, and at most 4194304 are allowed/],
  huge: ["send(Buffer.from([0x7f, 0xff, 0xff, 0xff]))", /a message of 2147483647 bytes/],
  empty: ["send(Buffer.alloc(4))", /a message that cannot be read/],
  damaged: ["frame(0, Buffer.from([0xff, 15, 0x6f, 1, 2, 3]))", /a message that cannot be read/],
  stray: ["frame({ hello: 1 })", /neither a call nor a reply/],
  sparse: [
    "frame(0, Buffer.from([0xff, 15, 0x61, 0xff, 0xff, 0xff, 0xff, 15, 0x40, 0, 0xff, 0xff, 0xff, 0xff, 15]))",
    /a list that is longer than its message/,
  ],
  laughs: [
    "let v = []; for (let n = 0; n < 40; n++) v = [v, v]; call('announce', 'evil-event', v)",
    /more than 1000000 objects/,
  ],
  repeated: [
    "const v = ['x'.repeat(1e6)]; call('announce', 'evil-event', [v, v, v, v, v])",
    /objects that are repeated to more than 4194304 bytes/,
  ],
  cause: [
    `call('announce', 'evil-event', new Error("e", { cause: JSON.parse('{"__proto__":{"polluted":1}}') }))`,
    /the field __proto__/,
  ],
  dependency: ["ask('depend', [['helper']], ['double'], [])", /the name of a module is not a text/],
  pollution: [`call("announce", "evil-event", JSON.parse('{"__proto__":{"polluted":1}}'))`, /the field __proto__/],
  many: ["frame({ call: 'log', id: 1, values: Array(1000).fill(1) })", /neither a call nor a reply/],
  unknown: ["call('constructor'); call('__proto__'); call('hasOwnProperty', 'a'); ask('toString')", undefined],
  reply: ["frame({ reply: 77, value: 1 }); frame({ reply: -1, error: { stack: {}, message: [] } })", undefined],
  level: ["call('log', [['fatal', 'text']])", /its log\[0\]\.level is not one of debug, info, warn, error/],
  lines: [
    "call('log', Array.from({ length: 2000 }, () => ['info', 'x']))",
    /its log is not a list of at most 1000 items/,
  ],
  notText: ["call('log', [['info', { toString: 1 }]])", /its log\[0\] is not a line with a text/],
  fields: ["call('log', [['info', 'x', '{not json']])", /its log\[0\]\.fields is not JSON/],
  forged: [
    `call('log', [['info', 'forged \\u001b[2J line', '{"module":"good","level":"error","host":"h"}']])`,
    undefined,
  ],
  note: ["call('note', { length: 5 })", /its status is not a text/],
  fault: ["call('fault', {}, null)", /the step of a fault is not a text/],
  faultError: [
    "call('fault', 'a step', { name: 'ModhostError', code: 'MODULE_CYCLE', message: 7, stack: [] })",
    undefined,
  ],
  announce: [
    "call('announce', 'config-changed', { options: ['x'] })",
    /it announced the event config-changed, which is not its own/,
  ],
  announceOther: ["call('announce', 'good-event', 1)", /it announced the event good-event/],
  announceForm: ["call('announce', 5, 1)", /an event is not a text/],
  listen: ["call('listen', 'http-finished')", /it hooked http-finished/],
  listenMany: ["for (let n = 0; n < 5000; n++) call('listen', 'evil-' + n)", undefined],
  app: [
    "call('provide', { host: '*', keys: ['GET /'], hasMiddleware: false, settings: { name: 'good', default_path: '/', priority: 9 } })",
    undefined,
  ],
  appForm: ["call('provide', { host: 1, keys: [{}], hasMiddleware: 'x', settings: null })", undefined],
  prototype: ["ask('depend', 'helper', ['constructor', 'constructor'], ['return process'])", undefined],
  ungranted: ["ask('depend', 'helper', ['secret'], [])", undefined],
  path: ["ask('depend', 'helper', 'double', [])", /a path is not a list/],
  unreadCalls: [
    "for (let n = 0; n < 3000; n++) frame({ call: 'depend', id: n + 1e6, values: ['helper', ['never'], []] })",
    undefined,
  ],
  ports: [
    "ask('openPort', {}, 80); ask('openPort', '0.0.0.0', 80); ask('openPort', null, -1); call('closePort', {}); call('closePort', 1)",
    undefined,
  ],
  dials: ["ask('dial', {}, 80); ask('dial', '127.0.0.1', 80); ask('dial', '\\0', '80')", undefined],
  closed: ["(await import('node:fs')).closeSync(3)", /process\.exit\(0\)|it did not respond/],
};

/** The routes of a module that does what the acts say: `GET /NAME`. It needs `raw` before it. */
export const actRoutes = Object.entries(acts)
  .map(([name, [code]]) => `    "GET /${name}": async () => { ${code}; return "done"; },`)
  .join("\n");
