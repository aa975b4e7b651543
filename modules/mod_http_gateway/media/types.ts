/**
 * Determines the type of a file by its name. The table is built in, so that responses do not depend
 * on the machine.
 */

/** Each line has a media type, followed by its extensions. */
const table = `
text/plain txt text log conf ini cfg env lock
text/html html htm
text/css css
text/javascript js mjs cjs
text/csv csv
text/tab-separated-values tsv
text/markdown md markdown
text/calendar ics
text/vcard vcf
text/vtt vtt
text/xml xml
text/x-c c h
text/x-go go
text/x-python py
text/x-rust rs
text/x-sh sh
text/yaml yaml yml
application/json json map
application/ld+json jsonld
application/manifest+json webmanifest
application/geo+json geojson
application/wasm wasm
application/pdf pdf
application/epub+zip epub
application/rtf rtf
application/sql sql
application/toml toml
application/xhtml+xml xhtml xht
application/rss+xml rss
application/atom+xml atom
application/zip zip
application/gzip gz tgz
application/x-bzip2 bz2
application/x-xz xz
application/zstd zst
application/x-7z-compressed 7z
application/vnd.rar rar
application/x-tar tar
application/vnd.ipld.car car
application/java-archive jar
application/vnd.android.package-archive apk
application/x-apple-diskimage dmg
application/x-bittorrent torrent
application/x-iso9660-image iso
application/vnd.oasis.opendocument.text odt
application/vnd.oasis.opendocument.spreadsheet ods
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/msword doc
application/vnd.ms-excel xls
application/vnd.ms-powerpoint ppt
application/x-subrip srt
application/vnd.apple.mpegurl m3u8
application/dash+xml mpd
font/woff woff
font/woff2 woff2
font/ttf ttf
font/otf otf
image/apng apng
image/avif avif
image/bmp bmp
image/gif gif
image/heic heic
image/jpeg jpg jpeg jfif
image/jxl jxl
image/png png
image/svg+xml svg
image/tiff tif tiff
image/vnd.microsoft.icon ico
image/webp webp
audio/aac aac
audio/flac flac
audio/midi mid midi
audio/mp4 m4a
audio/mpeg mp3
audio/ogg oga ogg opus
audio/wav wav
audio/webm weba
model/gltf-binary glb
model/gltf+json gltf
model/stl stl
video/mp2t ts
video/mp4 mp4 m4v
video/mpeg mpeg mpg
video/ogg ogv
video/quicktime mov
video/webm webm
video/x-matroska mkv
video/x-msvideo avi
`;

const byExtension = new Map(
  table
    .trim()
    .split("\n")
    .flatMap((line) => {
      const [type = "", ...extensions] = line.split(" ");
      return extensions.map((extension) => [extension, withCharset(type)] as const);
    }),
);

/** Text is UTF-8, but an HTML page declares its own charset. */
export function withCharset(type: string): string {
  return type.startsWith("text/") && type !== "text/html" ? `${type}; charset=utf-8` : type;
}

/** Returns undefined for an unknown extension. */
export function typeByName(name: string): string | undefined {
  const dot = name.lastIndexOf(".");
  return dot < 0 ? undefined : byExtension.get(name.slice(dot + 1).toLowerCase());
}
