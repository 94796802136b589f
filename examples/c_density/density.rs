//! Print the log-density of a model at its initial point, and the first element of the gradient.
//!
//! rustc -O -L FOLDER -C link-arg=-Wl,-rpath,FOLDER density.rs
use std::ffi::{c_char, c_int, CStr, CString};

#[repr(C)]
struct Density {
    _private: [u8; 0],
}

#[link(name = "pytensor_onnx")]
extern "C" {
    fn density_open(path: *const c_char, density: *mut *mut Density) -> *const c_char;
    fn density_close(density: *mut Density);
    fn density_dim(density: *const Density) -> i64;
    fn density_start(density: *const Density, point: *mut f64);
    fn density_log_density_gradient(
        density: *mut Density,
        point: *const f64,
        log_density: *mut f64,
        gradient: *mut f64,
    ) -> c_int;
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or("model.density".to_string());
    let path = CString::new(path).expect("a path");
    let mut density = std::ptr::null_mut();
    unsafe {
        let problem = density_open(path.as_ptr(), &mut density);
        if !problem.is_null() {
            panic!("{}", CStr::from_ptr(problem).to_string_lossy());
        }
        let dim = density_dim(density) as usize;
        let (mut point, mut gradient, mut value) = (vec![0.0; dim], vec![0.0; dim], 0.0);
        density_start(density, point.as_mut_ptr());
        let (at, to) = (point.as_ptr(), gradient.as_mut_ptr());
        let reason = density_log_density_gradient(density, at, &mut value, to);
        assert_eq!(reason, 0);
        println!("{value:?} {:?}", gradient[0]);
        density_close(density);
    }
}
