import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  packages_minimum_release_age: {
    type: "period",
    default: "48h",
    min: 0,
    per_host: false,
    applies: "live",
    describe:
      "Minimum age of a version of a package, dependencies included. Most attacks on packages are found within this time.",
  },
  packages_release_age_exceptions: {
    type: "strings",
    default: [],
    per_host: false,
    applies: "live",
    example: ["modhost-mod-shop", "@acme/*"],
    describe: "Packages that may be younger: `name`, `name@version`, or `@scope/*`.",
  },
  packages_allow_scripts: {
    type: "strings",
    default: [],
    per_host: false,
    applies: "live",
    example: ["classic-level"],
    describe: "Packages that may have install scripts, in the same forms. The scripts are not run.",
  },
  packages_allow_deprecated: {
    type: "strings",
    default: [],
    per_host: false,
    applies: "live",
    example: ["modhost-mod-shop@1.2.3"],
    describe: "Modules that may be installed although they are deprecated, in the same forms.",
  },
  packages_verify_provenance: {
    type: "boolean",
    default: true,
    per_host: false,
    applies: "live",
    describe:
      "Whether to verify the provenance of packages that have one. This needs the keys of Sigstore, which are fetched from the internet.",
  },
} as const satisfies OptionDeclarations;
