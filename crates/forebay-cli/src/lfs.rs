pub fn main(_: &[std::ffi::OsString]) -> i32 {
    2
}
