import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  api_tokens: {
    type: "any",
    secret: "keys",
    example: { "a-long-random-text": { paths: ["/api/v0/add", "/api/v0/pin"] } },
    describe:
      "Tokens (bearer, or password of basic) that let callers in from other machines and through proxies: a list, or an object from token to the paths that it opens.",
  },
  api_require_token: {
    type: "boolean",
    default: false,
    describe:
      "Ask callers of this machine for a token as well, at every address. The command line takes that of the file `api-token`, which is made in the repo for its owner alone while the host runs.",
  },
  api_hosts: {
    type: "strings",
    default: [],
    describe: "Host names beside localhost and loopback addresses under which local callers need no token.",
  },
  api_pubsub_wire: {
    type: "enum",
    values: ["plain", "multibase"],
    default: "plain",
    describe: "Form of topics and messages in the API: `plain` as 0.9, `multibase` as later clients speak.",
  },
  api_config_edit: {
    type: "boolean",
    default: false,
    describe: "Allow `config/edit` to start the editor of the host's own terminal.",
  },
} as const satisfies OptionDeclarations;
