import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { Watch } from "#modules/mod_http_gateway/p2p_proxy/watch.ts";

test("a request to a peer is late if no byte moves while the client is ready, or if it takes too long in total", (t) => {
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  const stream = Object.assign(new PassThrough(), { moved: 0 });
  let late = 0;
  const watch = new Watch({ stallTime: 10, totalTime: 100 }, () => (late += 1));
  watch.follow(stream);
  for (let at = 0; at < 3; at += 1) {
    stream.moved += 1;
    t.mock.timers.tick(10);
  }
  watch.isForClient = () => true;
  t.mock.timers.tick(30);
  assert.equal(late, 0);
  watch.isForClient = () => false;
  t.mock.timers.tick(10);
  assert.equal(late, 1);
  watch.isForClient = () => true;
  t.mock.timers.tick(30);
  assert.equal(late, 2);
  watch.end();
  watch.isForClient = () => false;
  t.mock.timers.tick(1000);
  assert.equal(late, 2);
});
