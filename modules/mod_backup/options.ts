import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  backup_to: {
    type: "string",
    per_host: false,
    applies: "live",
    example: "/var/backups/modhost",
    describe:
      "Destination of `modhost backup` if the command names none: a folder, relative to the config file, or `s3://BUCKET/PREFIX`.",
  },
  backup_include: {
    type: "strings",
    default: [],
    per_host: false,
    applies: "live",
    example: ["./modules", "/srv/www"],
    describe:
      "Files and folders to back up in addition to the data folder, the config file and its certificates; relative to the config file.",
  },
  backup_key_file: {
    type: "path",
    per_host: false,
    applies: "live",
    must_exist: true,
    describe:
      "File with the key that encrypts backups. Nobody can restore them without it, so store a copy elsewhere. If not set, backups are not encrypted.",
  },
  backup_s3_endpoint: {
    type: "url",
    per_host: false,
    applies: "live",
    example: "https://s3.example.org",
    describe: "URL of the object store of `s3://` destinations; default: that of AWS for the region.",
  },
  backup_s3_region: {
    type: "string",
    default: "us-east-1",
    per_host: false,
    applies: "live",
    describe: "Region of the bucket.",
  },
  backup_s3_key_id: {
    type: "string",
    per_host: false,
    applies: "live",
    describe: "Identifier of the access key to the bucket.",
  },
  backup_s3_secret: {
    type: "string",
    per_host: false,
    secret: true,
    applies: "live",
    describe: "The secret of that access key.",
  },
} as const satisfies OptionDeclarations;
