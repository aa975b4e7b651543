import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Module, OptionDeclarations } from "#core/types.ts";
import { hostOf, stateOf } from "./support.ts";

const options = {
  mail_password: { type: "string", required: true, secret: true, describe: "Password of the mailbox." },
} as const satisfies OptionDeclarations;

describe("a required option", () => {
  test("that is not set fails its module with the way to set it, and the other modules load", async (t) => {
    let loads = 0;
    const load = () => void (loads += 1);
    const host = await hostOf(t, { mail: { name: "mail", options, load }, other: () => {} });
    const { status, note } = stateOf(host, "mail")!;
    assert.deepEqual([status, loads], ["failed", 0]);
    assert.match(
      note ?? "",
      /^The module mail needs the option mail_password, which is not set: Password of the mailbox\. .*MODHOST_MAIL_PASSWORD$/,
    );
    assert.equal(stateOf(host, "other")?.status, "loaded");
  });

  test("that is set is read by its type", async (t) => {
    let read: string | undefined;
    const load = (module: Module) => {
      const password: string = (module as Module<typeof options>).get_option_string("mail_password");
      read = password;
    };
    const host = await hostOf(t, { mail: { name: "mail", options, load } }, { config: { mail_password: "hunter22" } });
    assert.deepEqual([stateOf(host, "mail")?.status, read], ["loaded", "hunter22"]);
  });

  test("may be set for one host only: on the others the module fails", async (t) => {
    const hosts = { "a.example": { mail_password: "hunter22" }, "b.example": {} };
    const host = await hostOf(t, { mail: { name: "mail", options, load: () => {} } }, { config: { hosts } });
    assert.equal(stateOf(host, "mail", "a.example")?.status, "loaded");
    assert.equal(stateOf(host, "mail", "b.example")?.status, "failed");
  });
});

test("a secret appears in no log line and in no note, whoever writes it", async (t) => {
  const load = (module: Module) => {
    module.log.info("logging in with %s", module.get_option("mail_password"));
    module.log.debug("settings: %j", { password: module.get_option("mail_password") });
    throw new Error(`the server refused hunter22`);
  };
  const host = await hostOf(t, { mail: { name: "mail", options, load } }, { config: { mail_password: "hunter22" } });
  const lines = host.log().join("\n");
  assert.match(lines, /logging in with \(secret\)/);
  assert.doesNotMatch(lines, /hunter22/);
  assert.match(stateOf(host, "mail")?.note ?? "", /the server refused \(secret\)/);
});
