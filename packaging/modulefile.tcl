#%Module1.0
# For environment-modules and Lmod: module use PREFIX/share/modulefiles; module load forebay
module-whatis "Forebay: a burst buffer and I/O tuner for parallel jobs"
# PREFIX/share/modulefiles/forebay/VERSION
set prefix [file normalize [file join [file dirname $ModulesCurrentModulefile] .. .. ..]]
conflict forebay
prepend-path PATH $prefix/bin
# An empty part stands for the manual of the system. Without it, man would find these pages only.
append-path MANPATH {}
prepend-path MANPATH $prefix/share/man
prepend-path LD_LIBRARY_PATH $prefix/lib
prepend-path PKG_CONFIG_PATH $prefix/lib/pkgconfig
prepend-path CPATH $prefix/include
