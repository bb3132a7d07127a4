//! The frame of a page: one file, no scripts, nothing beside it, for light and dark screens and for paper.

use super::svg::escaped;

const STYLE: &str = "
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1a1a1a; --soft: #5a5a5a; --rule: #dddddd; --link: #005a8c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e8e8e8; --soft: #a8adb2; --rule: #363b40; --link: #7cc4f0; }
  svg .ink { fill: var(--ink); } svg .axis, svg .mark { stroke: #9aa0a6; } svg .grid { stroke: #2b3036; }
  svg .vertex { fill: #14171a; stroke: #b0b5ba; } svg .true-edge { stroke: #b0b5ba; } svg .missed { stroke: #6a7076; }
  svg .s0 { stroke: #3d9bd6; } svg .c0 { fill: #3d9bd6; } svg .s1 { stroke: #f07a2b; } svg .c1 { fill: #f07a2b; }
  svg .s2 { stroke: #1fbf91; } svg .c2 { fill: #1fbf91; } svg .s6 { stroke: #e8e8e8; } svg .c6 { fill: #e8e8e8; }
  svg .band { fill-opacity: 0.24; }
}
svg .paper { fill: none; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem;
  border-top: 1px solid var(--rule); padding-top: 1.2rem; }
a { color: var(--link); } nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { color: var(--soft); } dd { margin: 0; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; display: block; }
figcaption, caption, .legend-note { color: var(--soft); font-size: .88rem; text-align: left; } figcaption { margin-top: .3rem; }
caption { caption-side: bottom; padding-top: .5rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { vertical-align: bottom; white-space: normal; } th[scope=row], thead th:first-child { text-align: left; }
.notes { padding-left: 1.2rem; } pre { overflow-x: auto; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-size: .9em; } summary { cursor: pointer; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } figure, tr { break-inside: avoid; } h2 { break-after: avoid; }
  nav { display: none; } .scroll { overflow: visible; } table { font-size: 7pt; } }
";

/// A whole page with this body; `style` is added to the style that all pages have.
pub(crate) fn document(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escaped(title)
    )
}
