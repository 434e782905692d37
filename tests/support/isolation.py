"""What keeps tests apart from the configuration of the machine and of whoever runs them, and from its devices."""

#: No file can be there, for any user.
NOWHERE = "/dev/null/none"
WITHOUT_CONFIGURATION = {"FOREBAY_SITE_CONFIG": NOWHERE, "XDG_CONFIG_HOME": NOWHERE}
#: Reading the PCI bus takes half of the processor time of a start of mpiexec, and no test needs what is found there.
WITHOUT_DEVICES = {"HWLOC_COMPONENTS": "-pci,-linuxio"}
