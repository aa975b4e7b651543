/** JSON Schemas of installed and fetched modules in the Admin API. */
const text = { type: "string" };
const texts = { type: "array", items: text };
const object = { type: "object" };
const time = { type: "string", format: "date-time" };

export const shapes = {
  PackageState: {
    type: "object",
    properties: {
      module: text,
      package: text,
      version: text,
      source: text,
      installed: time,
      verified: texts,
      grant: object,
      run: text,
      previous: text,
    },
    required: ["module", "package", "version", "source", "installed", "verified", "grant", "run"],
  },
  PackageOffer: {
    type: "object",
    properties: {
      module: text,
      version: text,
      tree: text,
      description: object,
      permissions: object,
      installed: object,
    },
    required: ["module", "version", "tree", "description", "permissions"],
  },
};
