import assert from "node:assert/strict";
import { AsyncLocalStorage, createHook } from "node:async_hooks";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { bindListeners } from "#core/util/bound_listeners.ts";

const context = new AsyncLocalStorage<string>();

const made = (): EventEmitter => {
  const emitter = new EventEmitter();
  bindListeners(emitter);
  return emitter;
};

for (const method of ["on", "addListener", "once", "prependListener", "prependOnceListener"] as const) {
  test(`a listener added by ${method} runs in the context in which it was added`, () => {
    const emitter = made();
    const seen: unknown[] = [];
    context.run("adding", () =>
      emitter[method]("event", function (this: unknown, ...values: unknown[]) {
        seen.push(context.getStore(), this === emitter, ...values);
      }),
    );
    context.run("emitting", () => emitter.emit("event", 1, 2));
    assert.deepEqual(seen, ["adding", true, 1, 2]);
  });

  test(`a listener added by ${method} is removed by its original function`, () => {
    const emitter = made();
    const listener = () => assert.fail("it was removed");
    emitter[method]("event", listener);
    emitter.removeListener("event", listener);
    emitter.emit("event");
    assert.equal(emitter.listenerCount("event"), 0);
  });
}

test("a listener added by once runs once", () => {
  const emitter = made();
  let count = 0;
  emitter.once("event", () => {
    count += 1;
  });
  emitter.emit("event");
  emitter.emit("event");
  assert.equal(count, 1);
});

test("an emitter that is bound twice runs its listeners once, and removes them", () => {
  const emitter = made();
  bindListeners(emitter);
  let count = 0;
  const listener = () => {
    count += 1;
  };
  emitter.on("event", listener);
  emitter.emit("event");
  emitter.removeListener("event", listener);
  emitter.emit("event");
  assert.equal(count, 1);
});

test("methods that an emitter has of its own are still called", () => {
  const emitter = new EventEmitter();
  const added: unknown[] = [];
  emitter.on = function (this: EventEmitter, event: string | symbol, listener: (...values: unknown[]) => void) {
    added.push(event);
    return EventEmitter.prototype.on.call(this, event, listener);
  };
  bindListeners(emitter);
  emitter.on("event", () => undefined);
  assert.deepEqual(added, ["event"]);
});

test("emitters of one class share the methods that bind their listeners", () => {
  assert.equal(made().on, made().on);
});

test("a listener is bound without a bound function, which takes microseconds to make", () => {
  const emitter = made();
  const types: string[] = [];
  const hook = createHook({ init: (_id, type) => types.push(type) }).enable();
  emitter.on("event", () => undefined);
  hook.disable();
  assert.deepEqual(types, ["modhost.listener"]);
});
