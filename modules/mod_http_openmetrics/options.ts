import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  openmetrics_allow_ips: {
    type: "strings",
    protects: true,
    default: ["127.0.0.1", "::1"],
    per_host: false,
    example: ["127.0.0.1", "::1", "10.0.0.0/8"],
    describe: "Addresses and CIDR ranges that may read the metrics without a token.",
  },
  openmetrics_tokens: {
    type: "any",
    protects: true,
    secret: "keys",
    per_host: false,
    example: ["a-long-random-text"],
    describe: "Bearer tokens with which the metrics can be read from anywhere: a list.",
  },
  openmetrics_hosts: {
    type: "strings",
    default: [],
    per_host: false,
    example: ["metrics.internal"],
    describe: "Host names, in addition to localhost and addresses, at which the metrics are available without a token.",
  },
  openmetrics_timeout: {
    type: "period",
    default: 5,
    min: 0.1,
    max: 60,
    unit: "seconds",
    per_host: false,
    describe: "A module that has not provided its metrics after this time is left out of the response.",
  },
} as const satisfies OptionDeclarations;
