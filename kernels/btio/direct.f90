! Fortran direct access as NAS BT uses it: a record is a point, five doubles. What reaches the file
! system, in which pieces and when, is up to the run-time library of the compiler.
module btio_direct
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_null_char
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private

  integer, parameter :: components = 5

contains

  ! The name in the form that Fortran wants.
  pure function name_of(path, length) result(name)
    integer(c_int), intent(in) :: length
    character(kind=c_char), intent(in) :: path(length)
    character(len=length) :: name
    integer :: i
    do i = 1, length
      name(i:i) = path(i)
    end do
  end function name_of

  ! message ends with a null character; room holds at least one.
  subroutine set_message(text, room, message)
    character(len=*), intent(in) :: text
    integer(c_int), intent(in) :: room
    character(kind=c_char), intent(out) :: message(room)
    integer :: i, length
    length = min(len_trim(text), int(room) - 1)
    do i = 1, length
      message(i) = text(i:i)
    end do
    message(length + 1) = c_null_char
  end subroutine set_message

  ! Each function returns iostat, 0 if it went well, and else the library's own message.
  ! Opens a file for reading and writing, which makes it if it is not there, or an existing one for
  ! reading only.
  function btio_direct_open(path, length, writing, unit, room, message) result(status) bind(c)
    integer(c_int), value :: length, writing, room
    character(kind=c_char), intent(in) :: path(length)
    integer(c_int), intent(out) :: unit
    character(kind=c_char), intent(out) :: message(room)
    integer(c_int) :: status
    real(real64) :: point(components)
    character(len=512) :: text
    integer :: record_length
    text = ''
    inquire (iolength=record_length) point
    if (writing /= 0) then
      open (newunit=unit, file=name_of(path, length), form='unformatted', access='direct', &
            recl=record_length, status='unknown', action='readwrite', iostat=status, iomsg=text)
    else
      open (newunit=unit, file=name_of(path, length), form='unformatted', access='direct', &
            recl=record_length, status='old', action='read', iostat=status, iomsg=text)
    end if
    call set_message(text, room, message)
  end function btio_direct_open

  ! Writes a row of points, one record each; first_record counts from 1.
  function btio_direct_write(unit, first_record, points, values, room, message) result(status) bind(c)
    integer(c_int), value :: unit, points, room
    integer(c_int64_t), value :: first_record
    real(c_double), intent(in) :: values(components, points)
    character(kind=c_char), intent(out) :: message(room)
    integer(c_int) :: status, point
    character(len=512) :: text
    text = ''
    status = 0
    do point = 1, points
      write (unit, rec=first_record + point - 1, iostat=status, iomsg=text) values(:, point)
      if (status /= 0) exit
    end do
    call set_message(text, room, message)
  end function btio_direct_write

  function btio_direct_read(unit, first_record, points, values, room, message) result(status) bind(c)
    integer(c_int), value :: unit, points, room
    integer(c_int64_t), value :: first_record
    real(c_double), intent(out) :: values(components, points)
    character(kind=c_char), intent(out) :: message(room)
    integer(c_int) :: status, point
    character(len=512) :: text
    text = ''
    status = 0
    do point = 1, points
      read (unit, rec=first_record + point - 1, iostat=status, iomsg=text) values(:, point)
      if (status /= 0) exit
    end do
    call set_message(text, room, message)
  end function btio_direct_read

  ! Flushes the library's buffer to the file system.
  function btio_direct_flush(unit, room, message) result(status) bind(c)
    integer(c_int), value :: unit, room
    character(kind=c_char), intent(out) :: message(room)
    integer(c_int) :: status
    character(len=512) :: text
    text = ''
    flush (unit, iostat=status, iomsg=text)
    call set_message(text, room, message)
  end function btio_direct_flush

  function btio_direct_close(unit, room, message) result(status) bind(c)
    integer(c_int), value :: unit, room
    character(kind=c_char), intent(out) :: message(room)
    integer(c_int) :: status
    character(len=512) :: text
    text = ''
    close (unit, iostat=status, iomsg=text)
    call set_message(text, room, message)
  end function btio_direct_close

end module btio_direct
