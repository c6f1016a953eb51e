//! Figures that others have published, to set beside ours. The tables are in `data/`.

pub mod hines2000;
pub mod li2007;
pub mod sloan1992;
pub mod venix1984;
