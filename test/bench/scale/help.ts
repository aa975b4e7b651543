export const scaleHelp = `npm run bench -- scale [OPTIONS]

Compares hosts on one store (PostgreSQL and S3) with a host on a store of its own and with a bare client of the S3 server.
Needs Linux. VERSITYGW or MINIO names the program of an S3 server. Without one, the tests' server in memory is used.

  --only EXPRESSION   only works with matching names: "add", "files of 4 KiB in one add", "adds of 1 KiB", "cat, cached",
                      "cat, cold", "pin/add", "pin/ls of one pin", "new host"
  --rounds N          rounds; default 3
  --size MIB          size of the large file; default 256
  --hosts N           maximum number of hosts at the same time; default 3
  --line MBIT         rate of the line over which one more host reads; default 1000, 0 leaves it out
  --blocks N          blocks of the store that a new host joins; default 1,000,000, 0 leaves it out

To run one part alone (building and installing the package takes half a minute before):

  cold reads, near the objects and over a line       --only cold --hosts 1
  large files, by one host                           --only '^add$|^cat' --hosts 1
  small files and calls, by one host                 --only 'files|adds|pin' --hosts 1 --line 0
  up to three hosts at the same time                 --blocks 0 --line 0 --rounds 1
  a new host on a store of 1,000,000 blocks          --only 'new host' --rounds 1
`;
