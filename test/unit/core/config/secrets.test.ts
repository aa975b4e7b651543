import assert from "node:assert/strict";
import { test } from "node:test";
import { configFrom } from "#core/config/index.ts";
import type { OptionDeclarations } from "#core/types.ts";

const declarations = {
  mail_password: { type: "string", secret: true, describe: "" },
  mail_tokens: { type: "any", secret: "keys", describe: "" },
  mail_boxes: {
    type: "object",
    describe: "",
    entries: {
      user: { type: "string", describe: "" },
      password: { type: "string", secret: true, describe: "" },
    },
  },
  mail_pin: { type: "integer", secret: true, describe: "" },
} as const satisfies OptionDeclarations;

function config(values: Record<string, unknown>) {
  const made = configFrom(values, "/srv");
  made.declare(declarations, "mail");
  return made;
}

test("secrets of the server, of hosts, of fields and of keys are masked, and other text stays", () => {
  const made = config({
    mail_password: "hunter22",
    mail_tokens: { "token-one": { paths: ["/inbox"] } },
    mail_boxes: { anna: { user: "anna.b", password: "open sesame" } },
    hosts: { "a.example": { mail_password: "hunter22-and-more" } },
  });
  const text = "hunter22, hunter22-and-more, token-one of /inbox, open sesame of anna.b";
  assert.equal(made.mask(text), "(secret), (secret), (secret) of /inbox, (secret) of anna.b");
});

test("tokens in a list are secrets, and very short texts are not", () => {
  assert.equal(config({ mail_tokens: ["token-one", "a"] }).mask("token-one a"), "(secret) a");
  assert.equal(config({}).mask("nothing is set"), "nothing is set");
});

test("the error for a wrong value of a secret option does not contain the value", () => {
  const wrong = { mail_pin: "12345x", mail_boxes: { anna: "open sesame", bert: { user: "bert", password: 98765 } } };
  assert.throws(
    () => config(wrong).check(),
    (error: Error & { details: { list: unknown } }) => {
      const { details, message } = error;
      assert.match(message, /mail_pin is set to a secret, but it must be an integer/);
      assert.match(message, /mail_boxes\.anna is set to a secret, but/);
      assert.match(message, /mail_boxes\.bert\.password is set to a secret, but it must be text/);
      assert.doesNotMatch(message + JSON.stringify(details.list), /12345x|open sesame|98765/);
      return true;
    },
  );
});

test("the error for a secret that is read with another type does not contain the value", () => {
  assert.throws(() => config({ mail_pin: "12345x" }).value("mail_pin"), /mail_pin is set to a secret, but/);
});

test("an option cannot be required and have a default", () => {
  const both = { mail_host: { type: "string", required: true, default: "localhost", describe: "" } } as const;
  assert.throws(() => configFrom({}).declare(both, "mail"), /its option mail_host is required, and yet has a default/);
});

test("a secret is masked in its JSON and URL forms, and also if it is a number", () => {
  const password = 'ä "b"\\\n/c';
  const made = config({ mail_password: password, mail_pin: 987654 });
  const text = [password, JSON.stringify({ password }), encodeURIComponent(password), `pin ${987654}`].join(" ");
  assert.equal(made.mask(text), '(secret) {"password":"(secret)"} (secret) pin (secret)');
});

test("secrets of the server's own tokens are masked, whatever text surrounds them", () => {
  const secret = `mht_abcdefghij_${"x".repeat(32)}`;
  assert.equal(config({}).mask(`GET /a/${secret}/b?c=${secret.replace("_", "%5F")}`), "GET /a/mht_.../b?c=mht_...");
});
