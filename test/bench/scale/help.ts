export const scaleHelp = `npm run bench -- scale [OPTIONS]

Hosts on one store (PostgreSQL and S3) beside one with a store of its own, and beside what the S3 server gives to a bare
client. Needs Linux. VERSITYGW or MINIO names the program of an S3 server; without one it is that of the tests, in memory.

  --only EXPRESSION   works whose names match: "add", "files of 4 KiB in one add", "adds of 1 KiB", "cat, cached",
                      "cat, cold", "pin/add", "pin/ls of one pin", "new host"
  --rounds N          3 unless set
  --size MIB          of the large file; 256 unless set
  --hosts N           the most hosts at a time; 3 unless set
  --line MBIT         of the line over which one more host reads; 1000 unless set, 0 leaves it out
  --blocks N          of the store to which a new host comes; 1,000,000 unless set, 0 leaves that out

Each part alone; the package is built and installed first, which takes half a minute:

  cold reads, near the objects and over a line       --only cold --hosts 1
  all that is large, by one host                     --only '^add$|^cat' --hosts 1
  all that is small, by one host                     --only 'files|adds|pin' --hosts 1 --line 0
  up to three hosts at the same time                 --blocks 0 --line 0 --rounds 1
  a new host on a store of 1,000,000 blocks          --only 'new host' --rounds 1
`;
