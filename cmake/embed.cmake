# Writes a C++ file that holds texts:
#   cmake -DOUT=FILE -DROOT=FOLDER -DSOURCES=a,b -DPTX=FILE -P embed.cmake
# SOURCES are relative to ROOT, the program first; PTX may be empty.
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(files "")
foreach(name IN LISTS SOURCES)
  file(READ "${ROOT}/${name}" text)
  string(APPEND files "    {\"${name}\", R\"riffle(${text})riffle\"},\n")
endforeach()
set(ptx "")
if(PTX)
  file(READ "${PTX}" ptx)
endif()
file(WRITE "${OUT}" "#include \"sparse/cuda/code.h\"

namespace riffle::sparse::cuda {
namespace {

constexpr SourceFile kFiles[] = {
${files}};

constexpr char kPtx[] = R\"riffle(${ptx})riffle\";

}  // namespace

std::span<const SourceFile> source_files() { return kFiles; }
std::string_view built_in_ptx() { return {kPtx, sizeof kPtx - 1}; }

}  // namespace riffle::sparse::cuda
")
