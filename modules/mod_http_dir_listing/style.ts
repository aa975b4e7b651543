import { page_style } from "../../core/net/http.ts";

/** Style of the listing page, which loads no scripts or other resources. */
export const style = `${page_style}
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { margin: 0 0 1rem; padding: 0 .5rem; font-size: 1.25rem; font-weight: 600; overflow-wrap: anywhere; }
h1 small { color: var(--soft); font-size: inherit; font-weight: 400; }
table { width: 100%; border-collapse: collapse; }
th { color: var(--soft); font-size: .8125rem; font-weight: 500; text-align: left; }
th, td { padding: .5rem; border-bottom: 1px solid var(--line); vertical-align: baseline; }
td:first-child { width: 100%; overflow-wrap: anywhere; }
td:nth-child(n+2), th:nth-child(n+2) { color: var(--soft); text-align: right; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
tbody tr:hover { background: var(--hover); }
.folder a { font-weight: 600; }
.up a { color: var(--soft); }
p { padding: 0 .5rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 32rem) {
  time span { display: none; }
  h1, p { padding: 0 .25rem; }
  th, td { padding: .625rem .25rem; }
}
`;
