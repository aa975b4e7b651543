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
    describe: 'The checks that requests for an app must pass, by the name of the app; "*" is for all apps.',
    entries: {
      allow: {
        type: "strings",
        default: [],
        describe: "Addresses and CIDR ranges that may send requests; empty: all except those in deny.",
      },
      deny: { type: "strings", default: [], describe: "Addresses and CIDR ranges that may not send requests." },
      https: { type: "boolean", default: false, describe: "Redirect plain HTTP to HTTPS, with 308." },
      hsts: {
        type: "period",
        default: 0,
        describe: "How long browsers use only HTTPS (Strict-Transport-Security); 0: the header is not sent.",
      },
      secure_headers: {
        type: "boolean",
        default: false,
        describe: "Add X-Content-Type-Options, X-Frame-Options, Referrer-Policy and Cross-Origin-Opener-Policy.",
      },
      headers: { type: "object", default: {}, describe: "Further headers for responses that lack them." },
      rate: {
        type: "string",
        default: "",
        example: "5/s",
        describe:
          "Maximum rate of requests from one address: 10/s, 600/m, 5000/h. IPv6 addresses count by networks of 64 bits.",
      },
      burst: {
        type: "integer",
        min: 0,
        default: 0,
        describe: "Maximum number of requests at once from one address; 0: those of one second, at least 1.",
      },
      users: {
        type: "strings",
        default: [],
        describe:
          'Users who may sign in with a password: names of http_guard_users and http_guard_users_file, "*" for all.',
      },
      token_scope: {
        type: "string",
        default: "",
        describe: "Accept tokens of the server that have the scope app:NAME; this option is NAME.",
      },
      identity_headers: {
        type: "strings",
        default: [],
        describe:
          "Headers in which trusted proxies name the user, the one with the user name first. They are removed from all other requests.",
      },
    },
  },
  http_guard_users: {
    type: "object",
    protects: true,
    default: {},
    secret: true,
    applies: "live",
    describe: "Users by name, each with the text that modhost password printed.",
  },
  http_guard_users_file: {
    type: "path",
    protects: true,
    must_exist: true,
    example: "./users",
    applies: "live",
    describe:
      "File with a line NAME:PASSWORD for each user, as modhost password NAME prints it. The server reads it again after a change.",
  },
} as const satisfies OptionDeclarations;

export type GuardOptions = NonNullable<OptionValue<typeof options.http_guard>>;
export type GuardEntry = GuardOptions[string];
