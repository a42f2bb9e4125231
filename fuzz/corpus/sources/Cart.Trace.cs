namespace Shop;

public partial class Cart<T>
{
    private void Trace(string text)
    {
        text = text.ToUpperInvariant();
        var line = $"""
            {text}: a "cart"
            """;
        Console.WriteLine(line);
    }
}
