/** Plans, which are made from facts alone: the differences, and what happens to the modules. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Config } from "#core/config/index.ts";
import type { InstanceFacts } from "#core/module/instance.ts";
import { type PlanFacts, planOf } from "#core/operations/plan.ts";
import { planLines } from "#core/operations/plan_text.ts";
import { bindAddressDifference, bindAddressesOf } from "#core/ports/bind_addresses.ts";
import type { OptionDeclarations } from "#core/types.ts";

const declared: OptionDeclarations = {
  plain: { type: "string", describe: "Read when a module loads." },
  seconds: { type: "period", default: 5, describe: "A period." },
  live: { type: "string", applies: "live", describe: "Heard of." },
  later: { type: "string", applies: "start", describe: "For the next start." },
  word: { type: "string", secret: true, describe: "A secret." },
};

const config = (written: Record<string, unknown>, environment: Record<string, string> = {}) => {
  const made = new Config({ written, directory: "/", environment: new Map(Object.entries(environment)) });
  made.declare(declared, "owner");
  return made;
};

interface Made {
  readonly host?: string;
  readonly reads?: Record<string, string[]>;
  readonly depends?: string[];
  readonly handlesChanges?: boolean;
  readonly isGlobal?: boolean;
  readonly views?: string[];
}

function instance(name: string, { host = "*", reads = {}, depends = [], views, ...rest }: Made = {}): InstanceFacts {
  return {
    key: `${name}@${host}`,
    name,
    host,
    depends: new Set(depends),
    isGlobal: false,
    handlesChanges: false,
    reads: new Map(Object.entries(reads).map(([option, hosts]) => [option, new Set(hosts)])),
    views,
    ...rest,
  };
}

/** Returns the plan for two configurations, where every host enables all modules of `wanted`. */
function plan(previous: Config, next: Config, live: InstanceFacts[], facts: Partial<PlanFacts> = {}) {
  const names = [...new Set(live.map(({ name }) => name))];
  const hostsOf = (one: Config) => (one.hosts().length === 0 ? ["*"] : one.hosts());
  const wanted = (one: Config) => hostsOf(one).flatMap((host) => names.map((name) => ({ name, host })));
  return planOf({
    previous,
    next,
    live,
    failed: [],
    requested: new Set(),
    wanted: { previous: wanted(previous), next: wanted(next) },
    moved: new Map(),
    isDisabled: () => false,
    ports: [],
    certificates: [],
    ...facts,
  });
}

const actions = ({ plan }: ReturnType<typeof planOf>) =>
  plan.modules.map(({ action, module, host, because }) => `${action} ${module}@${host}: ${because.join(", ")}`);

describe("a plan", () => {
  test("is empty if nothing differs, whatever the notation", () => {
    const live = [instance("one", { reads: { seconds: ["*"] } })];
    const found = plan(config({ seconds: "1m", plain: null }), config({ seconds: 60 }), live);
    assert.deepEqual([found.plan.isEmpty, found.plan.options, planLines(found.plan)], [true, [], []]);
    assert.equal(plan(config({ seconds: 5 }), config({}), live).plan.isEmpty, true);
  });

  test("lists the modules that are tried again with the reason, and none if nothing differs", () => {
    const live = [instance("one", { reads: { plain: ["*"] } })];
    const failed = [
      { name: "fragile", host: "*", status: "quarantined", note: "it failed 20 times: hush" },
      { name: "broken", host: "*", status: "failed", note: undefined },
      { name: "elsewhere", host: "*", status: "failed", note: undefined },
    ] as const;
    const names = [{ name: "one", host: "*" }, ...failed.slice(0, 2).map(({ name, host }) => ({ name, host }))];
    const facts = { failed, wanted: { previous: names, next: names } };
    const word = { word: "hush" };
    assert.deepEqual(actions(plan(config(word), config({ ...word, plain: "other" }), live, facts)), [
      "exchange one@*: plain",
      "retry fragile@*: it is in quarantine: it failed 20 times: (secret)",
      "retry broken@*: it did not load",
    ]);
    const same = plan(config(word), config(word), live, facts);
    assert.deepEqual([same.plan.isEmpty, actions(same), same.steps.retry], [true, [], []]);
  });

  test("replaces modules that have read changed options, and their dependants", () => {
    const live = [
      instance("base", { reads: { plain: ["*"] } }),
      instance("upper", { depends: ["base@*"] }),
      instance("top", { depends: ["upper@*"] }),
      instance("other", { reads: { seconds: ["*"] } }),
    ];
    const found = plan(config({ plain: "a" }), config({ plain: "b" }), live);
    assert.deepEqual(actions(found), [
      "exchange base@*: plain",
      "exchange upper@*: it depends on base",
      "exchange top@*: it depends on upper",
    ]);
    assert.deepEqual(planLines(found.plan)[0], 'plain: "a" -> "b", read by base');
  });

  test("includes options that no module declares, and those of the environment", () => {
    const live = [instance("one", { reads: { free: ["*"] } }), instance("two", { reads: { plain: ["*"] } })];
    const found = plan(config({ free: { a: 1 } }, { plain: "x" }), config({ free: { a: 2 } }, { plain: "y" }), live);
    assert.deepEqual(actions(found), ["exchange one@*: free", "exchange two@*: plain"]);
  });

  test("lists options that nothing has read, and affects no module", () => {
    const found = plan(config({}), config({ plain: "new" }), [instance("one")]);
    assert.deepEqual([found.plan.isEmpty, actions(found)], [false, []]);
    assert.deepEqual(planLines(found.plan), ['plain: not set -> "new"']);
  });

  test("notifies the owner of a live option and others that handle changes, and replaces other readers", () => {
    const live = [
      instance("owner", { handlesChanges: true }),
      instance("hears", { handlesChanges: true, reads: { live: ["*"] } }),
      instance("deaf", { reads: { live: ["*"] } }),
      instance("both", { handlesChanges: true, reads: { live: ["*"], plain: ["*"] } }),
    ];
    const found = plan(config({}), config({ live: "x", plain: "y" }), live);
    assert.deepEqual(actions(found), [
      "exchange deaf@*: live",
      "exchange both@*: plain",
      "tell owner@*: live",
      "tell hears@*: live",
    ]);
    assert.deepEqual(actions(plan(config({}), config({ live: "x" }), [instance("owner")])), []);
  });

  test("leaves options that apply at the start for the next start", () => {
    const live = [instance("one", { reads: { later: ["*"] } })];
    const found = plan(config({ later: "a" }), config({ later: "b" }), live);
    assert.deepEqual([actions(found), found.plan.waiting, found.changed], [[], ["later"], []]);
    assert.match(planLines(found.plan)[0] ?? "", /\(at the next start\)/);
  });

  test("affects only the instance of a virtual host if only the value of that host differs", () => {
    const hosts = (values: Record<string, unknown>) => ({ "a.test": values, "b.test": {} });
    const live = ["a.test", "b.test"].map((host) => instance("one", { host, reads: { plain: [host] } }));
    const previous = config({ plain: "s", hosts: hosts({ plain: "own" }) });
    const own = plan(previous, config({ plain: "s", hosts: hosts({ plain: "other" }) }), live);
    assert.deepEqual(actions(own), ["exchange one@a.test: plain"]);
    assert.deepEqual(
      own.plan.options.map(({ host }) => host),
      ["a.test"],
    );
    const server = plan(previous, config({ plain: "t", hosts: hosts({ plain: "own" }) }), live);
    assert.deepEqual(actions(server), ["exchange one@b.test: plain"]);
    const gone = plan(previous, config({ plain: "s", hosts: hosts({}) }), live);
    assert.deepEqual(actions(gone), ["exchange one@a.test: plain"]);
  });

  test("moves modules that belong to a host if the list of hosts differs, and keeps global ones", () => {
    const live = [
      instance("global", { isGlobal: true, handlesChanges: true, reads: { hosts: ["*"] } }),
      instance("one"),
    ];
    const found = plan(config({}), config({ hosts: { "a.test": {} } }), live);
    assert.deepEqual(actions(found), ["load one@a.test: hosts", "tell global@*: hosts", "unload one@*: hosts"]);
    assert.deepEqual(found.plan.hosts, { added: ["a.test"], removed: [] });
  });

  test("replaces a global module whose hosts differ", () => {
    const live = [instance("global", { isGlobal: true, views: ["a.test"] })];
    const found = plan(config({ hosts: { "a.test": {} } }), config({ hosts: { "a.test": {}, "b.test": {} } }), live);
    assert.deepEqual(actions(found), ["exchange global@*: hosts"]);
  });

  test("keeps modules that others depend on or that were loaded by command, and unloads others that are not enabled", () => {
    const live = [
      instance("base"),
      instance("leaf"),
      instance("user", { depends: ["base@*"] }),
      instance("gone", { depends: ["leaf@*"] }),
      instance("asked"),
    ];
    const wanted = {
      previous: ["user", "gone"].map((name) => ({ name, host: "*" })),
      next: [{ name: "user", host: "*" }],
    };
    const found = plan(config({}), config({}), live, { wanted, requested: new Set(["asked"]) });
    assert.deepEqual(actions(found), ["unload leaf@*: nothing depends on it", "unload gone@*: modules_enabled"]);
  });

  test("unloads disabled modules and their dependants", () => {
    const live = [instance("base"), instance("user", { depends: ["base@*"] })];
    const both = ["base", "user"].map((name) => ({ name, host: "*" }));
    const isDisabled = (name: string) => name === "base";
    const wanted = { previous: both, next: [] };
    const found = plan(config({}), config({}), live, { wanted, isDisabled });
    assert.deepEqual(actions(found), ["unload base@*: modules_disabled", "unload user@*: modules_enabled"]);
    // The dependant is still enabled, so it is loaded again, which fails because it needs the
    // disabled module.
    const refused = plan(config({}), config({}), live, { wanted: { previous: both, next: both.slice(1) }, isDisabled });
    assert.match(actions(refused)[0] ?? "", /load user@\*: it depends on a disabled module/);
  });

  test("tries failed modules again if anything differs, and forgets those that are not enabled", () => {
    const failed = [{ name: "broken", host: "*", status: "failed", note: undefined }] as const;
    const wanted = { previous: [{ name: "broken", host: "*" }], next: [{ name: "broken", host: "*" }] };
    assert.deepEqual(plan(config({}), config({}), [], { failed, wanted }).steps.retry, []);
    assert.deepEqual(plan(config({}), config({ plain: "x" }), [], { failed, wanted }).steps.retry, wanted.next);
    const gone = plan(config({}), config({}), [], { failed, wanted: { previous: wanted.previous, next: [] } });
    assert.deepEqual(gone.steps.forget, ["broken"]);
  });

  test("replaces a module that has a different file", () => {
    const found = plan(config({}), config({}), [instance("one")], {
      moved: new Map([["one", "its file is a different one"]]),
    });
    assert.deepEqual(
      [actions(found), [...found.steps.moved]],
      [["exchange one@*: its file is a different one"], ["one"]],
    );
  });

  test("contains no secret", () => {
    const found = plan(config({ word: "old-word" }), config({ word: "new-word", plain: "new-word" }), [
      instance("one"),
    ]);
    assert.doesNotMatch(JSON.stringify(found.plan), /old-word|new-word/);
  });
});

describe("the addresses of a service", () => {
  const addresses = (ports: number[], interfaces: string[]) => bindAddressesOf({ ports, interfaces });
  const text = ({ address, port }: { address: string; port: number }) => `${address}:${port}`;

  for (const [name, before, after, opened, closed] of [
    ["another port", addresses([80], ["a"]), addresses([81], ["a"]), ["a:81"], ["a:80"]],
    ["one more port", addresses([80], ["a"]), addresses([80, 81], ["a"]), ["a:81"], []],
    ["another address", addresses([80], ["a"]), addresses([80], ["b"]), ["b:80"], ["a:80"]],
    ["no port", addresses([80], ["a", "b"]), addresses([], ["a", "b"]), [], ["a:80", "b:80"]],
    ["a second port that the system chooses", addresses([0], ["a"]), addresses([0, 0], ["a"]), ["a:0"], []],
    ["another order", addresses([80, 81], ["a"]), addresses([81, 80], ["a"]), [], []],
  ] as const) {
    test(`differ by ${name}`, () => {
      const found = bindAddressDifference(before, after, before);
      assert.deepEqual([found.opened.map(text), found.closed.map(text)], [opened, closed]);
    });
  }
});
