//! SVG to PNG, with a font that is part of the program: the same picture on every machine.

use anyhow::Context;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// DejaVu Sans, cut down to the letters and signs that figures use. Its licence lies beside it.
const FONT: &[u8] = include_bytes!("../../../font/DejaVuSans-subset.ttf");

/// Pixels for each unit of the SVG.
const DENSITY: f32 = 2.0;

/// Draws an SVG picture.
pub(crate) fn png(svg: &str) -> anyhow::Result<Vec<u8>> {
    let mut options = Options::default();
    options.fontdb_mut().load_font_data(FONT.to_vec());
    let tree = Tree::from_str(svg, &options).context("a figure could not be read back as SVG")?;
    let side = |length: f32| (length * DENSITY).ceil().max(1.0) as u32;
    let mut pixels = Pixmap::new(side(tree.size().width()), side(tree.size().height()))
        .context("a figure is too large for a PNG file; use --format svg")?;
    pixels.fill(Color::WHITE);
    resvg::render(&tree, Transform::from_scale(DENSITY, DENSITY), &mut pixels.as_mut());
    pixels.encode_png().context("a figure could not be written as PNG")
}
