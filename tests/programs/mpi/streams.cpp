// A C++ program's streams: 100 blocks of 50,000 bytes out, and in again; then a line.
#include <fstream>
#include <string>
#include <vector>

int main(int count, char **words) {
  if (count != 2)
    return 2;
  std::vector<char> block(50000, 'x');
  std::ofstream out(words[1], std::ios::binary);
  for (int i = 0; i < 100; i++)
    out.write(block.data(), block.size());
  out.close();
  std::ifstream in(words[1], std::ios::binary);
  for (int i = 0; i < 100; i++)
    in.read(block.data(), block.size());
  std::ofstream line(words[1] + std::string(".line"));
  line << "one line " << 1 << std::endl;
  return in.good() && line.good() ? 0 : 1;
}
