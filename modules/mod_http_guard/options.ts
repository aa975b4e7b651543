import type { OptionDeclarations, OptionValue } from "../../core/types.ts";

export const options = {
  http_guard: {
    type: "object",
    protects: true,
    keys: "apps",
    default: {},
    applies: "live",
    example: {
      "*": { https: true, hsts: "180d", secure_headers: true },
      notes: { users: ["anna"], rate: "5/s", burst: 20 },
      hello: { allow: ["10.0.0.0/8"] },
    },
    describe: 'What requests for an app have to meet before they reach it, by the app\'s name; "*" is for all.',
    entries: {
      allow: {
        type: "strings",
        default: [],
        describe: "Addresses and CIDR ranges that may ask; empty: all that deny does not have.",
      },
      deny: { type: "strings", default: [], describe: "Addresses and CIDR ranges that may not ask." },
      https: { type: "boolean", default: false, describe: "Send plain HTTP to HTTPS, with 308." },
      hsts: {
        type: "period",
        default: 0,
        describe: "How long browsers shall use HTTPS only (Strict-Transport-Security); 0: they are not told.",
      },
      secure_headers: {
        type: "boolean",
        default: false,
        describe: "Add X-Content-Type-Options, X-Frame-Options, Referrer-Policy and Cross-Origin-Opener-Policy.",
      },
      headers: { type: "object", default: {}, describe: "Further headers for answers that do not have them." },
      rate: {
        type: "string",
        default: "",
        example: "5/s",
        describe: "Requests of one address in a time: 10/s, 600/m, 5000/h. IPv6 counts by networks of 64 bits.",
      },
      burst: {
        type: "integer",
        min: 0,
        default: 0,
        describe: "Requests of one address that may come at once; 0: those of one second, at least 1.",
      },
      users: {
        type: "strings",
        default: [],
        describe: 'Who may sign in with a password: names of http_guard_users and http_guard_users_file, "*" for all.',
      },
      token_scope: {
        type: "string",
        default: "",
        describe: "Let tokens of the server in that have the scope app:NAME; this is NAME.",
      },
      identity_headers: {
        type: "strings",
        default: [],
        describe:
          "Headers by which trusted proxies say who asks, the name of the user first. They are taken from everybody else's requests.",
      },
    },
  },
  http_guard_users: {
    type: "object",
    protects: true,
    default: {},
    secret: true,
    applies: "live",
    describe: "Users by name, each with what modhost password printed.",
  },
  http_guard_users_file: {
    type: "path",
    protects: true,
    must_exist: true,
    example: "./users",
    applies: "live",
    describe: "File with a line NAME:PASSWORD for each user, as modhost password NAME prints it. Changes are seen.",
  },
} as const satisfies OptionDeclarations;

export type GuardOptions = NonNullable<OptionValue<typeof options.http_guard>>;
export type GuardEntry = GuardOptions[string];
