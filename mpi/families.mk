# The MPIs that are installed: included by the Makefiles of the library and of the replay, which are built for each.
BUILD ?= ../build
CFLAGS ?= -O2

# mpicc is Open MPI's or MPICH's, whichever the system prefers; a suffix names the one that is meant.
family_of = $(shell $(1) -show 2>/dev/null | grep -qi mpich && echo mpich || \
  { $(1) --showme:version 2>/dev/null | grep -qi 'open mpi' && echo openmpi; })
MPICC_OPENMPI ?= $(firstword $(foreach c,mpicc.openmpi mpicc,$(if $(filter openmpi,$(call family_of,$(c))),$(c))))
MPICC_MPICH ?= $(firstword $(foreach c,mpicc.mpich mpicc,$(if $(filter mpich,$(call family_of,$(c))),$(c))))

families := $(if $(MPICC_OPENMPI),openmpi) $(if $(MPICC_MPICH),mpich)
