/** `file/ls`, the older listing of directories. */
import { type FileLsObject, printable } from "modhost/node";
import { type Commands, defineGroup, readCommand, value } from "../rpc/command.ts";
import { fields, map, nullable } from "../rpc/shape.ts";

const fileLink = fields("LsLink", { Name: "string", Hash: "string", Size: "uint64", Type: "string" });
const fileObject = fields("LsObject", { Hash: "string", Size: "uint64", Type: "string", Links: nullable([fileLink]) });

const written = ({ cid, size, type, links }: FileLsObject) => ({
  Hash: String(cid),
  Size: size,
  Type: type,
  Links: links?.map((link) => ({ Name: link.name, Hash: String(link.cid), Size: link.size, Type: link.type })) ?? null,
});

const mapValues = <T, U>(record: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, one]) => [key, map(one)]));

export const commands = {
  file: defineGroup({ help: "Older names of file commands." }),
  "file/ls": readCommand({
    help: "Lists directories; use `ls` instead.",
    deprecated: true,
    arguments: [
      { name: "ipfs-path", path: true, required: true, variadic: true, stdin: "lines", help: "What to list." },
    ],
    returns: value(fields("LsOutput", { Arguments: map("string"), Objects: map(fileObject) })),
    async run({ node, arguments: { "ipfs-path": paths }, signal, offline }) {
      const { arguments: given, objects } = await node.file.ls(paths, { signal, offline });
      return { Arguments: mapValues(given, String), Objects: mapValues(objects, written) };
    },
    text({ Arguments, Objects }) {
      const isFolder = (path: string) => Objects[Arguments[path] as string]?.Type === "Directory";
      const folders = Object.keys(Arguments).filter(isFolder);
      const files = Object.keys(Arguments).filter((path) => !isFolder(path));
      const parts = [...new Set(folders.map((path) => Arguments[path] as string))].map((hash) => {
        const names = folders.filter((path) => Arguments[path] === hash).map((path) => `${printable(path)}:\n`);
        const links = Objects[hash]?.Links ?? [];
        return [
          ...(folders.length + files.length > 1 ? names : []),
          ...links.map(({ Name }) => `${printable(Name)}\n`),
        ];
      });
      const head = files.map((path) => `${path}\n`);
      return [...(head.length > 0 ? [head] : []), ...parts].map((lines) => lines.join("")).join("\n");
    },
  }),
} satisfies Commands;
