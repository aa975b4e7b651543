/** JSON Schemas of the backup results in the Admin API. */
const text = { type: "string" };
const integer = { type: "integer" };
const time = { type: "string", format: "date-time" };
const texts = { type: "array", items: text };

const progress = {
  type: "object",
  properties: { files: integer, bytes: integer, added: integer, total: integer },
  required: ["files", "bytes", "added", "total"],
};

const result = {
  type: "object",
  properties: {
    id: text,
    time,
    place: text,
    files: integer,
    bytes: integer,
    added: integer,
    seconds: { type: "number" },
    removed: texts,
    warnings: texts,
  },
  required: ["id", "time", "place", "files", "bytes", "added", "seconds", "removed", "warnings"],
};

export const shapes = {
  BackupState: {
    type: "object",
    properties: {
      running: {
        type: "object",
        properties: { by: text, began: time, progress },
        required: ["by", "began", "progress"],
      },
      done: result,
      failed: { type: "object", properties: { time, reason: text }, required: ["time", "reason"] },
    },
  },
};
