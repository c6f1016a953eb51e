//! Which law does the cost of a switch follow as the ring grows?
