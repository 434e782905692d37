! Without MPI-IO, as Fortran programs do: direct access in records of 40 bytes, in reverse order, and read
! again; then a formatted file.
program direct
#ifdef WITH_MPI
  use mpi
#endif
  implicit none
  integer, parameter :: records = 30000, doubles = 5
  double precision :: point(doubles)
  character(len=4000) :: path
  integer :: i, code
#ifdef WITH_MPI
  call MPI_Init(code)
#endif
  code = 0
  call get_command_argument(1, path)
  open (10, file=trim(path), form='unformatted', access='direct', recl=40, status='replace')
  do i = records, 1, -1
    point = i
    write (10, rec=i) point
  end do
  close (10)
  open (10, file=trim(path), form='unformatted', access='direct', recl=40, status='old')
  do i = 1, records
    read (10, rec=i) point
    if (point(1) /= i) stop 1
  end do
  close (10)
  open (11, file=trim(path)//'.text', form='formatted', status='replace')
  write (11, '(a)') 'a line'
  close (11)
#ifdef WITH_MPI
  call MPI_Finalize(code)
#endif
end program
