//! Colours, fonts and signs of the SVG.
//!
//! All names begin with `lp`, so that a page may take the drawing in without either disturbing the other. Arrows have
//! mid-tones that are readable on any page; cards bring their own background, and a darker one where dark is wanted.

pub(super) const CSS: &str = "\
.lp text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:10.5px;fill:#57606a}\
.lp .lp-title{font-size:15px;font-weight:600;fill:#7d8590}\
.lp .lp-legend text{fill:#7d8590}\
.lp .lp-card{fill:#fff;stroke:#d0d7de;stroke-width:1}\
.lp .lp-ours .lp-card{fill:#f6f8fa;stroke:#8c959f}\
.lp .lp-name{font-size:13px;font-weight:600;fill:#1f2328}\
.lp .lp-state{font-weight:600}\
.lp .lp-sign{fill:none;stroke:currentColor;stroke-width:1.7;stroke-linecap:round;stroke-linejoin:round}\
.lp .lp-bar{fill:currentColor}\
.lp .lp-node .lp-state{fill:currentColor}\
.lp .lp-ready{color:#1f883d}.lp .lp-running{color:#0969da}.lp .lp-waiting{color:#9a6700}.lp .lp-missing{color:#6e7781}\
.lp .lp-unknown{color:#8250df}.lp .lp-failed,.lp .lp-cycle{color:#cf222e}\
.lp .lp-failed .lp-card,.lp .lp-cycle .lp-card{stroke:#cf222e}\
.lp .lp-missing .lp-card{stroke-dasharray:4 3}\
.lp .lp-arrow{fill:none;stroke:#8c959f;stroke-width:1.4}\
.lp .lp-unmet{stroke:#bf8700;stroke-dasharray:6 4}\
.lp .lp-bad{stroke:#e5534b}\
.lp .lp-made{stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:1.8}\
.lp .lp-in-cycle{stroke:#e5534b;stroke-width:2.2}\
.lp .lp-head{fill:#8c959f}.lp .lp-head-unmet{fill:#bf8700}.lp .lp-head-bad{fill:#e5534b}\
@media(prefers-color-scheme:dark){\
.lp text{fill:#9198a1}.lp .lp-name{fill:#f0f6fc}\
.lp .lp-card{fill:#161b22;stroke:#3d444d}.lp .lp-ours .lp-card{fill:#212830;stroke:#656c76}\
.lp .lp-ready{color:#3fb950}.lp .lp-running{color:#4493f8}.lp .lp-waiting{color:#d29922}.lp .lp-missing{color:#9198a1}\
.lp .lp-unknown{color:#ab7df8}.lp .lp-failed,.lp .lp-cycle{color:#f85149}\
.lp .lp-failed .lp-card,.lp .lp-cycle .lp-card{stroke:#f85149}}";

pub(super) const DEFS: &str = "\
<marker id=\"lp-tip\" class=\"lp-head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 .5 8 4 0 7.5Z\"/></marker>\
<marker id=\"lp-tip-unmet\" class=\"lp-head-unmet\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 .5 8 4 0 7.5Z\"/></marker>\
<marker id=\"lp-tip-bad\" class=\"lp-head-bad\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 .5 8 4 0 7.5Z\"/></marker>\
<marker id=\"lp-tip-cycle\" class=\"lp-head-bad\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"11\" markerHeight=\"11\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 .5 8 4 0 7.5Z\"/></marker>\
<g id=\"lp-ready\"><circle cx=\"6\" cy=\"6\" r=\"5.6\"/><path d=\"M3.4 6.2 5.3 8.1 8.7 4.2\"/></g>\
<g id=\"lp-running\"><circle cx=\"6\" cy=\"6\" r=\"5.6\"/><path d=\"M6 3V6L8.2 7.6\"/></g>\
<g id=\"lp-waiting\"><path d=\"M2.6 .8H9.4M2.6 11.2H9.4M3.4 .8C3.4 4.4 8.6 7.6 8.6 11.2M8.6 .8C8.6 4.4 3.4 7.6 3.4 11.2\"/></g>\
<g id=\"lp-missing\"><circle cx=\"6\" cy=\"6\" r=\"5.6\" stroke-dasharray=\"2.2 2.2\"/></g>\
<g id=\"lp-unknown\"><circle cx=\"6\" cy=\"6\" r=\"5.6\"/><path d=\"M4.4 4.8C4.4 2.8 7.6 2.8 7.6 4.8 7.6 6 6 6 6 7.2M6 8.9V9\"/></g>\
<g id=\"lp-failed\"><circle cx=\"6\" cy=\"6\" r=\"5.6\"/><path d=\"M4 4 8 8M8 4 4 8\"/></g>\
<g id=\"lp-cycle\"><path d=\"M10.6 4.4A5 5 0 0 0 1.4 4.2M1.4 7.6A5 5 0 0 0 10.6 7.8M10.8 1.6V4.5H7.9M1.2 10.4V7.5H4.1\"/></g>";
