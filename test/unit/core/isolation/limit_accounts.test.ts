/** Tests how the host counts requests, connections, lines and incidents of a module. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { GroupTime } from "#core/isolation/limits/group_time.ts";
import { LineAllowance } from "#core/isolation/limits/line_allowance.ts";
import { RequestAccount } from "#core/isolation/limits/request_account.ts";
import { subrequestLimit } from "#core/isolation/limits/subrequests.ts";
import { Incidents, incidentNote } from "#core/module/incidents.ts";
import { bytesOf, sizeText } from "#core/util/size.ts";

describe("the requests of a module", () => {
  test("are refused beyond the limit, until one ends", () => {
    const account = new RequestAccount(2);
    const [one] = [account.begin("a"), account.begin("b")];
    assert.equal(account.begin("c"), undefined);
    one?.end();
    one?.end();
    assert.notEqual(account.begin("c"), undefined);
    assert.equal(account.begin("d"), undefined);
  });

  test("get the time of the process only as far as no others are answered", () => {
    const account = new RequestAccount(1000);
    account.begin("long poll");
    // A hundred others use 2 s together.
    for (let n = 0; n < 100; n += 1) {
      const use = account.begin(String(n));
      use?.responded();
      use?.end();
    }
    assert.ok(account.countCpu(2) < 0.02);
    assert.ok(account.countCpu(1) > 1, "nothing else is answered while it spins");
  });

  test("do not get the time after their responses have begun", () => {
    const account = new RequestAccount(10);
    account.begin("stream")?.responded();
    assert.equal(account.countCpu(5), 0);
  });

  test("count their connections each, and those of nobody together", () => {
    const account = new RequestAccount(10);
    const admit = subrequestLimit("shop", 2, account);
    const refused = { code: "LIMIT_REACHED", message: /modules\.shop\.limits\.subrequests allows 2/ };
    const use = account.begin("a");
    account.begin("b");
    for (const id of ["a", "a", "b", "b", undefined, { forged: true }]) admit(id);
    for (const id of ["a", "b", undefined, "forged", 7]) assert.throws(() => admit(id), refused);
    use?.responded();
    assert.throws(() => admit("a"), refused, "it counts for nobody from now on");
  });
});

describe("the processor time of a group of processes", () => {
  const times = (pid: number, cpu: number, childCpu = 0) => ({ pid, cpu, childCpu });

  test("is that of each process, also when others have ended", () => {
    const time = new GroupTime();
    assert.equal(time.add([times(1, 2), times(2, 3)]), 5);
    assert.equal(time.add([times(1, 2.5), times(3, 1)]), 1.5);
    assert.equal(time.add([times(1, 2.5), times(4, 1)]), 1);
  });

  test("contains that of children once, whether they were seen or not", () => {
    const time = new GroupTime();
    time.add([times(1, 0), times(2, 3)]);
    assert.equal(time.add([times(1, 0, 4)]), 1, "the seen child went on for a second");
    assert.equal(time.add([times(1, 0, 6)]), 2, "another child was never seen");
  });

  test("contains that of a child once that ends after its parent was read", () => {
    const time = new GroupTime();
    time.add([times(1, 0), times(2, 3)]);
    assert.equal(time.add([times(1, 0)]), 0);
    assert.equal(time.add([times(1, 0, 3)]), 0);
    assert.equal(time.add([times(1, 0, 5)]), 2);
  });
});

describe("the lines of a module", () => {
  test("are left out beyond the limit, which is reported once, and then counted", () => {
    const warned: string[] = [];
    const lines = new LineAllowance(10, {
      warn: (...values: unknown[]) => void warned.push(values.join(" ")),
    } as never);
    const now = performance.now();
    const taken = Array.from({ length: 1000 }, () => lines.take(80, now)).filter(Boolean);
    assert.equal(taken.length, 100);
    assert.equal(warned.length, 1);
    lines.report(now + 6000);
    assert.match(warned[1] ?? "", /Left out lines .*900/);
    lines.report(now + 60_000);
    assert.equal(warned.length, 2);
    assert.equal(lines.take(80, now + 60_000), true);
  });
});

describe("the long lines of a module", () => {
  const taken = (perSecond: number, characters: number) => {
    const lines = new LineAllowance(perSecond, { warn: () => undefined } as never);
    const now = performance.now();
    return Array.from({ length: 1000 }, () => lines.take(characters, now)).filter(Boolean).length;
  };

  test("count as several", () => {
    assert.equal(taken(100, 1024), 1000);
    assert.equal(taken(100, 64 * 1024), 15);
  });

  test("are not all left out when one of them counts for more than a module may log at once", () => {
    assert.equal(taken(1, 64 * 1024), 1);
  });
});

describe("incidents", () => {
  test("are shown with the next instance, for a day", () => {
    const incidents = new Incidents();
    incidents.record("shop@*", "was restarted: it leaked");
    assert.equal(incidents.take("other@*"), undefined);
    const incident = incidents.take("shop@*");
    assert.equal(incidents.take("shop@*"), undefined);
    assert.ok(incident !== undefined);
    assert.match(incidentNote(incident) ?? "", /^was restarted: it leaked \(\d{4}-.*Z\)$/);
    assert.equal(incidentNote(incident, Date.now() + 25 * 3600 * 1000), undefined);
  });

  test("lead to a replacement at most once a minute", () => {
    const incidents = new Incidents();
    assert.deepEqual(
      [0, 59_000, 61_000].map((now) => incidents.mayRetire("shop@*", now)),
      [true, false, true],
    );
    assert.equal(incidents.mayRetire("other@*", 61_000), true);
  });
});

test("sizes are read as written, and written for people", () => {
  assert.deepEqual(["4MiB", "10MB", 7, "1.5 KiB"].map(bytesOf), [4_194_304, 10_000_000, 7, 1536]);
  assert.ok(Number.isNaN(bytesOf("many")));
  assert.deepEqual([500, 1536, 640 * 2 ** 20].map(sizeText), ["500 bytes", "1.5 KiB", "640 MiB"]);
});
