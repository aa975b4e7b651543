/** Of the listing page; it stands alone, without scripts or further requests. */
export const style = `
:root { --text: #1d2126; --soft: #667080; --line: #e3e6ea; --link: #0b57b7; --page: #fff; --hover: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e7eb; --soft: #97a1ae; --line: #2b3139; --link: #7db3ff; --page: #14171b; --hover: #1c2127; }
}
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
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
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
.folder a { font-weight: 600; }
.up a { color: var(--soft); }
p { padding: 0 .5rem; color: var(--soft); font-size: .875rem; }
@media (max-width: 32rem) {
  time span { display: none; }
  h1, p { padding: 0 .25rem; }
  th, td { padding: .625rem .25rem; }
}
`;
