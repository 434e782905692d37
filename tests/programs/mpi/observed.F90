! Three collective writes of 800 bytes a rank, by one of the three Fortran bindings:
! -DBINDING_MPIF, -DBINDING_MPI or -DBINDING_F08.
program observed
#ifdef BINDING_F08
  use mpi_f08
#endif
#ifdef BINDING_MPI
  use mpi
#endif
  implicit none
#ifdef BINDING_MPIF
  include 'mpif.h'
#endif
#ifdef BINDING_F08
  type(MPI_File) :: file
  type(MPI_Status) :: status
#else
  integer :: file, status(MPI_STATUS_SIZE)
#endif
  integer :: rank, ranks, code, i
  integer(kind=MPI_OFFSET_KIND) :: offset
  double precision :: values(100)
  character(len=4096) :: path

  call get_command_argument(1, path)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  values = rank
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, file, code)
  if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 3, code)
  do i = 0, 2
    offset = (i * ranks + rank) * 800
    call MPI_File_write_at_all(file, offset, values, 100, MPI_DOUBLE_PRECISION, status, code)
    if (code /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 4, code)
  end do
  call MPI_File_close(file, code)
  call MPI_Finalize(code)
end program observed
